/** The environment, streams and exit code of a command. */
export interface CommandContext {
  readonly env: NodeJS.ProcessEnv
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly out: NodeJS.WritableStream
  readonly err: NodeJS.WritableStream & { readonly isTTY?: boolean }
  /** Exit code of the command; 0 unless an error occurs. */
  exitCode: number
}
