/** Where in a document something stands: keys and indexes from the root. */
export type Path = readonly (string | number)[]

/** One thing that the operator should put right. */
export interface Diagnostic {
  /** The file as a person would name it, or `environment`. */
  readonly file: string
  /** 1-based; absent where there is no line to point at. */
  readonly line?: number
  /** `channels[0].base_url`, or the name of a variable; empty for the file as a whole. */
  readonly path: string
  /** Says what is expected, and never what a variable held. */
  readonly message: string
}

/** The configuration as a whole is refused: every mistake in it, in the order of its lines. */
export class ConfigError extends Error {
  readonly diagnostics: readonly Diagnostic[]

  constructor(mistakes: readonly Diagnostic[]) {
    super(mistakes.map(formatDiagnostic).join('\n'))
    this.name = 'ConfigError'
    this.diagnostics = mistakes
  }
}

/** `gateway.yaml:12: channels[0].base_url: expected …`. */
export function formatDiagnostic({ file, line, path, message }: Diagnostic): string {
  const place = line === undefined ? file : `${file}:${line}`
  return path === '' ? `${place}: ${message}` : `${place}: ${path}: ${message}`
}

/** `channels[0].base_url`; a key that is no plain name stands in brackets and quotes. */
export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!/^[\w-]+$/.test(step)) text += `[${JSON.stringify(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}
