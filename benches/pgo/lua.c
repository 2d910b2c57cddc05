/* Runs a script of Lua with arguments. */
#include <stdio.h>

#include "lauxlib.h"
#include "lualib.h"

int main(int argc, char **argv) {
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    lua_createtable(state, argc, 0);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(state, argv[i]);
        lua_rawseti(state, -2, i - 1);
    }
    lua_setglobal(state, "arg");
    if (luaL_loadfile(state, argv[1]) == LUA_OK) {
        for (int i = 2; i < argc; i++) lua_pushstring(state, argv[i]);
        if (lua_pcall(state, argc - 2, 0, 0) == LUA_OK) {
            lua_close(state);
            return 0;
        }
    }
    fprintf(stderr, "%s\n", lua_tostring(state, -1));
    return 1;
}
