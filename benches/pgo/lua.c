/* Runs a script of Lua with arguments, so many times, each time in a new state. */
#include <stdio.h>
#include <stdlib.h>

#include "lauxlib.h"
#include "lualib.h"

static int once(int argc, char **argv) {
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    lua_createtable(state, argc, 0);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(state, argv[i]);
        lua_rawseti(state, -2, i);
    }
    lua_setglobal(state, "arg");
    int status = luaL_loadfile(state, argv[0]);
    for (int i = 1; i < argc && status == LUA_OK; i++) lua_pushstring(state, argv[i]);
    if (status == LUA_OK) status = lua_pcall(state, argc - 1, 0, 0);
    if (status != LUA_OK) fprintf(stderr, "%s\n", lua_tostring(state, -1));
    lua_close(state);
    return status != LUA_OK;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    for (int left = atoi(argv[1]); left > 0; left--)
        if (once(argc - 2, argv + 2)) return 1;
    return 0;
}
