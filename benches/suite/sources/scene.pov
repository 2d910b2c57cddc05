// Spheres, boxes, mirrors, glass and a height of blobs; no procedural textures, whose code depends on the processor.
#version 3.7;
global_settings { assumed_gamma 1.0 max_trace_level 8 }
camera { location <0, 4, -12> look_at <0, 1, 0> }
light_source { <10, 20, -10> color rgb 1 area_light <3, 0, 0>, <0, 0, 3>, 4, 4 adaptive 1 }
light_source { <-10, 10, -5> color rgb 0.4 }
plane { y, 0 pigment { checker color rgb <0.9, 0.9, 0.8>, color rgb <0.2, 0.3, 0.4> } finish { reflection 0.15 } }
#declare Seed = seed(7);
#for (I, 1, 120)
    #declare At = <8 * rand(Seed) - 4, 3 * rand(Seed), 8 * rand(Seed) - 2>;
    #switch (mod(I, 4))
    #case (0) sphere { At, 0.4 pigment { color rgb <rand(Seed), rand(Seed), rand(Seed)> } finish { reflection 0.4 phong 1 } } #break
    #case (1) box { At - 0.3, At + 0.3 pigment { color rgb <rand(Seed), rand(Seed), 1> } finish { specular 0.5 } } #break
    #case (2) torus { 0.4, 0.12 rotate <40 * rand(Seed), 0, 30> translate At pigment { color rgb <1, rand(Seed), 0.2> } } #break
    #else sphere { At, 0.35 pigment { color rgbt <0.9, 1, 0.9, 0.8> } interior { ior 1.4 } }
    #end
#end
blob { threshold 0.6 #for (I, 1, 12) sphere { <3 * rand(Seed) - 1.5, 2 + rand(Seed), 2 * rand(Seed)>, 0.8, 1 } #end pigment { color rgb <0.4, 0.8, 0.5> } finish { phong 0.6 } }
