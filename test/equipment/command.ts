import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { Readable, Writable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { runCommand } from '../../src/cli/run-command.ts'
import type { RunningGateway } from './gateway.ts'
import { BASE_ENVIRONMENT, programFolder } from './program.ts'

/** The outcome of a command. */
export interface Outcome {
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** Standard output as JSON. */
  json(): unknown
}

/** The secret of the gateways that commands are run on. */
export const SECRET = 'the-secret-of-the-tests-of-commands'

/**
 * Runs a command to its end with its own environment; `input` is its standard input. The command runs in this
 * process, which takes a tenth of the time of a child process; tests that need a real process use
 * `sluiceProcess`.
 */
export async function sluice(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<Outcome> {
  const [out, err] = [new OutputBuffer(), new OutputBuffer()]
  const shell = { env, input: Readable.from(input === '' ? [] : [Buffer.from(input)]), out, err, exitCode: 0 }
  await runCommand(args, shell)
  return outcome(shell.exitCode, out.text, err.text)
}

/** Runs a command as operators do, in a separate process; `root` is the folder of the program. */
export async function sluiceProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input?: string,
  root?: string,
): Promise<Outcome> {
  const child = spawn(process.execPath, ['bin/sluice.mjs', ...args], {
    cwd: root ?? (await programFolder()),
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...BASE_ENVIRONMENT, ...env },
  })
  // A command that does not read its input may end before the input is written.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [out, err] = [new OutputBuffer(), new OutputBuffer()]
  child.stdout.pipe(out)
  child.stderr.pipe(err)
  return new Promise((resolve) => {
    child.on('close', (code) => resolve(outcome(code, out.text, err.text)))
  })
}

class OutputBuffer extends Writable {
  text = ''
  readonly #decoder = new StringDecoder('utf8')

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += this.#decoder.write(chunk)
    done()
  }
}

function outcome(code: number | null, out: string, err: string): Outcome {
  return { code, out, err, json: () => JSON.parse(out) }
}

/** The data folder of a gateway, running or stopped. */
type OfGateway = Pick<RunningGateway, 'dataDir'>

/** Runs a command on a gateway's data folder, with the gateway's own environment. */
export function commandOn(gateway: OfGateway, ...args: string[]): Promise<Outcome> {
  return commandReading(undefined, gateway, ...args)
}

/** Runs a command on a gateway's data folder with standard input. */
export function commandReading(
  input: string | undefined,
  gateway: OfGateway,
  ...args: string[]
): Promise<Outcome> {
  return sluice(args, environmentOf(gateway), input)
}

/** Runs a command on a gateway's data folder in a separate process. */
export function processOn(gateway: OfGateway, ...args: string[]): Promise<Outcome> {
  return sluiceProcess(args, environmentOf(gateway))
}

function environmentOf({ dataDir }: OfGateway): Record<string, string> {
  return { DATA_DIR: dataDir, GATEWAY_SECRET: SECRET, GATEWAY_CONFIG: join(dataDir, 'gateway.yaml') }
}

/** The two states of a gateway in which commands may run on its data folder. */
export const GATEWAY_STATES = ['while the gateway runs', 'while it does not'] as const

/** Does the work with the gateway running or stopped. A stopped gateway stays stopped until `untilItRuns`. */
export async function inGatewayState<Result>(
  manner: (typeof GATEWAY_STATES)[number],
  gateway: RunningGateway,
  work: () => Promise<Result>,
): Promise<Result> {
  if (manner === 'while the gateway runs') await untilItRuns(gateway)
  else await gateway.stop()
  return work()
}

/** Starts a gateway again where it was stopped. */
export async function untilItRuns(gateway: RunningGateway): Promise<void> {
  if (!gateway.isRunning) await gateway.restart()
}
