// What lint looks for. It imports nothing, so that eslint can be installed anywhere: `.ci/run` does.

const browser = Object.fromEntries(['document', 'window', 'location', 'history', 'atob', 'Blob', 'DecompressionStream', 'Response', 'performance', 'requestAnimationFrame'].map((name) => [name, 'readonly']));
const node = Object.fromEntries(['process', 'Buffer', 'URL', 'setTimeout'].map((name) => [name, 'readonly']));

const rules = Object.fromEntries([
  'array-callback-return', 'constructor-super', 'curly', 'default-case-last', 'eqeqeq', 'for-direction', 'getter-return', 'no-array-constructor',
  'no-async-promise-executor', 'no-case-declarations', 'no-class-assign', 'no-compare-neg-zero', 'no-cond-assign', 'no-const-assign',
  'no-constant-binary-expression', 'no-constant-condition', 'no-control-regex', 'no-debugger', 'no-dupe-args', 'no-dupe-else-if',
  'no-dupe-keys', 'no-duplicate-case', 'no-duplicate-imports', 'no-else-return', 'no-empty', 'no-empty-character-class', 'no-eval', 'no-ex-assign',
  'no-fallthrough', 'no-func-assign', 'no-global-assign', 'no-implied-eval', 'no-import-assign', 'no-inner-declarations', 'no-invalid-regexp',
  'no-irregular-whitespace', 'no-loss-of-precision', 'no-misleading-character-class', 'no-new-func', 'no-new-wrappers', 'no-obj-calls',
  'no-param-reassign', 'no-prototype-builtins', 'no-redeclare', 'no-regex-spaces', 'no-return-assign', 'no-self-assign', 'no-self-compare',
  'no-setter-return', 'no-shadow', 'no-shadow-restricted-names', 'no-sparse-arrays', 'no-template-curly-in-string', 'no-this-before-super',
  'no-throw-literal', 'no-undef', 'no-unexpected-multiline', 'no-unmodified-loop-condition', 'no-unreachable', 'no-unsafe-finally',
  'no-unsafe-negation', 'no-unsafe-optional-chaining', 'no-unused-expressions', 'no-unused-vars', 'no-use-before-define', 'no-useless-concat',
  'no-useless-escape', 'no-useless-return', 'no-var', 'object-shorthand', 'prefer-const', 'prefer-template', 'radix', 'require-yield', 'use-isnan',
  'valid-typeof',
].map((name) => [name, 'error']));

export default [
  {
    files: ['**/*.js'],
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    languageOptions: { ecmaVersion: 2022, sourceType: 'module', globals: browser },
    rules: {
      ...rules,
      curly: ['error', 'multi-line'],
      'no-param-reassign': ['error', { props: false }],
      'no-use-before-define': ['error', { functions: false }],
    },
  },
  { files: ['tests/*.js'], languageOptions: { globals: node } },
];
