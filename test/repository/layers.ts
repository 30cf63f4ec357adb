/**
 * The layers of src, outermost first: the one place where this rule is written. A file imports from its own
 * folder and from later rows; entries of one row do not import each other.
 */
export const LAYERS: readonly (readonly string[])[] = [
  ['cli'],
  ['gateway'],
  ['transfer'],
  ['config', 'cluster'],
  ['api', 'console'],
  ['features'],
  ['call', 'management'],
  ['accounts', 'alerts', 'content'],
  ['limits', 'upstreams'],
  ['store', 'telemetry', 'redis', 'http'],
  ['domain', 'ipc', '@sluice/http1', '@sluice/import', '@sluice/screen', '@sluice/simulator'],
  ['errors.ts', 'webassembly.d.ts', 'ws.d.ts'],
  ['@sluice/wire'],
]

/**
 * Folders whose subfolders do not import each other, with the exceptions: subfolders that all others may
 * import, and that import only those before them in the list.
 */
export const SEPARATE_SUBFOLDERS: Readonly<Record<string, readonly string[]>> = {
  accounts: ['ledger'],
  '@sluice/wire': ['json', 'sse', 'schemas', 'shape'],
  upstreams: [],
  api: [],
  features: [],
}

/**
 * The subfolders of `src/call`, each with the others that it imports. `docs/architecture.md: The core` says what
 * each is for; another import between them needs a reason.
 */
export const CALL_SUBFOLDERS: Readonly<Record<string, readonly string[]>> = {
  answers: [],
  dialects: [],
  digests: [],
}
