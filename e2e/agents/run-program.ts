import { spawn } from 'node:child_process'
import process from 'node:process'

/** How a program ended. */
export interface Ended {
  /** The exit code; null where a signal ended the program. */
  readonly code: number | null
  /** Standard output and standard error, interleaved as they were written. */
  readonly out: string
  readonly ms: number
  readonly timedOut: boolean
}

/** Runs a program and all its children, which are killed with it: at the timeout, or on abort. */
export function runProgram(
  command: string,
  args: readonly string[],
  { cwd, env, limitMs, stop }: { cwd: string; env: NodeJS.ProcessEnv; limitMs: number; stop: AbortSignal },
): Promise<Ended> {
  const started = performance.now()
  // A separate process group, so that one signal reaches all children.
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const chunks: Buffer[] = []
  let timedOut = false
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  const endGroup = (): void => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All processes of the group have ended.
    }
  }
  const limit = setTimeout(() => {
    timedOut = true
    endGroup()
  }, limitMs)
  stop.addEventListener('abort', endGroup)
  return new Promise((resolve) => {
    const settle = (code: number | null): void => {
      clearTimeout(limit)
      endGroup()
      stop.removeEventListener('abort', endGroup)
      const out = Buffer.concat(chunks).toString()
      resolve({ code, out, ms: Math.round(performance.now() - started), timedOut })
    }
    child.on('error', (error) => {
      chunks.push(Buffer.from(error.message))
      settle(null)
    })
    child.on('exit', endGroup)
    child.on('close', settle)
  })
}
