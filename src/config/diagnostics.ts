import { type ErrorForm, PLAIN_ERRORS } from '../ipc/error-form.ts'

/** Keys and list indexes that lead from the root of a document to a place in it. */
export type Path = readonly (string | number)[]

/** An error or a warning in the configuration. */
export interface Diagnostic {
  /** Path of the file as messages show it, or `environment`. */
  readonly file: string
  /** Number of the line in the file, starting at 1; absent if no line applies. */
  readonly line?: number
  /**
   * Path of the setting, such as `channels[0].base_url`, or the name of a variable; empty for the file as a
   * whole.
   */
  readonly path: string
  /** States what value is expected. Never contains the value of a variable, which may be secret. */
  readonly message: string
}

/** A refused configuration, with all of its errors in the order of lines. */
export class ConfigError extends Error {
  readonly diagnostics: readonly Diagnostic[]
  /** Absolute paths of files that settings name and that could not be read. */
  readonly unread: readonly string[]

  constructor(diagnostics: readonly Diagnostic[], unread: readonly string[] = []) {
    super(diagnostics.map(formatDiagnostic).join('\n'))
    this.name = 'ConfigError'
    this.diagnostics = diagnostics
    this.unread = unread
  }
}

/** Sends the refusal of a configuration with its diagnostics. */
export const CONFIG_ERRORS: ErrorForm = {
  pack: (error) =>
    error instanceof ConfigError
      ? { diagnostics: error.diagnostics, unread: error.unread }
      : PLAIN_ERRORS.pack(error),
  unpack(packed) {
    const { diagnostics, unread } = packed as Partial<ConfigError>
    return diagnostics ? new ConfigError(diagnostics, unread) : PLAIN_ERRORS.unpack(packed)
  },
}

/** Formats a diagnostic as `gateway.yaml:12: channels[0].base_url: expected …`. */
export function formatDiagnostic({ file, line, path, message }: Diagnostic): string {
  const place = line === undefined ? file : `${file}:${line}`
  return path === '' ? `${place}: ${message}` : `${place}: ${path}: ${message}`
}

/** Formats a path: `channels[0].base_url`. A key that is not a plain name is quoted in brackets. */
export function pathText(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!/^[\w-]+$/.test(step)) text += `[${JSON.stringify(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}
