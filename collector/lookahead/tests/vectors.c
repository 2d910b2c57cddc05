#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#define N 4096
static float a[N], b[N], c[N]; static double d[N], e[N]; static int idx[N]; static unsigned char s[N], t[N]; static long long l[N]; static short h[N];
__attribute__((noinline)) void f1(void){ for(int i=0;i<N;i++) c[i]=a[i]*b[i]+sqrtf(a[i]); }
__attribute__((noinline)) void f2(void){ for(int i=0;i<N;i++) if(a[i]>b[i]) c[i]+=a[i]/ (b[i]+1); }
__attribute__((noinline)) void f3(void){ for(int i=0;i<N;i++) d[i]=a[idx[i]]*e[i]; }
__attribute__((noinline)) int f4(void){ int r=0; for(int i=0;i<N;i++) r+=s[i]==t[i] ? s[i]*3 : t[i]; return r; }
__attribute__((noinline)) void f5(void){ for(int i=0;i<N;i++) l[i]=(long long)d[i]+idx[i]; }
__attribute__((noinline)) void f6(void){ for(int i=0;i<N;i++) h[i]=(short)(s[i]*t[i]>>3); }
__attribute__((noinline)) long f7(void){ long r=0; for(int i=0;i<N;i++) r+=__builtin_popcountll(l[i]); return r; }
__attribute__((noinline)) void f8(void){ for(int i=0;i<N;i++) a[idx[i]]=b[i]; }
__attribute__((noinline)) long double f9(void){ long double r=0; for(int i=0;i<200;i++) r+=sinl(e[i])*d[i]; return r; }
int main(int argc,char**argv){ unsigned x=12345; for(int i=0;i<N;i++){ x=x*1103515245+12345; a[i]=(x>>8)%1000/7.0f; b[i]=(x>>4)%999/3.0f; e[i]=x/1e6; idx[i]=(x>>9)%N; s[i]=x>>11; t[i]=x>>(i&15);} 
 double r=0; for(int k=0;k<(argc>1?atoi(argv[1]):1);k++){ f1();f2();f3();r+=f4();f5();f6();r+=f7();f8();r+=(double)f9(); for(int i=0;i<100;i++) r+=sin(d[i])+exp(-e[i]/1e5)+pow(b[i],1.3);} 
 char buf[200]; snprintf(buf,200,"%f %g %s",r,(double)c[77],"hello"); puts(buf); qsort(l,N,8,(int(*)(const void*,const void*))strcmp); return strlen(buf)==3; }
