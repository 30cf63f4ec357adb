/** Where a command runs: what it reads, and where it speaks. */
export interface Shell {
  readonly env: NodeJS.ProcessEnv
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly out: NodeJS.WritableStream
  readonly err: NodeJS.WritableStream & { readonly isTTY?: boolean }
  /** 0 until something goes wrong. */
  exitCode: number
}
