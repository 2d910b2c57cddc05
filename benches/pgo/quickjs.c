/* Runs a script of JavaScript, so many times, each time in a new context; prints what it returns. */
#include <stdio.h>
#include <stdlib.h>

#include "quickjs.h"

static int once(const char *script, size_t size, const char *name) {
    JSRuntime *runtime = JS_NewRuntime();
    JSContext *context = JS_NewContext(runtime);
    JSValue value = JS_Eval(context, script, size, name, JS_EVAL_TYPE_GLOBAL);
    int failed = JS_IsException(value);
    JSValue shown = failed ? JS_GetException(context) : value;
    const char *text = JS_ToCString(context, shown);
    fprintf(failed ? stderr : stdout, "%s\n", text ? text : "");
    JS_FreeCString(context, text);
    JS_FreeValue(context, shown);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
    return failed;
}

int main(int argc, char **argv) {
    static char script[1 << 20];
    FILE *file = argc > 2 ? fopen(argv[2], "r") : NULL;
    if (!file) return 2;
    size_t size = fread(script, 1, sizeof script - 1, file);
    for (int left = atoi(argv[1]); left > 0; left--)
        if (once(script, size, argv[2])) return 1;
    return 0;
}
