import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseOf, type UsageRow } from '../../test/fixtures/database.ts'
import type { RunningGateway } from '../../test/fixtures/gateway.ts'
import { type Agent, pathOf, type Task } from './agents.ts'
import type { Case } from './cases.ts'
import { secret } from './model.ts'
import { runProgram } from './run-program.ts'
import type { ReturnedSignatures } from './signatures.ts'
import { findFaults, workedMs } from './verdict.ts'

/** Milliseconds after which an agent is killed. */
const AGENT_LIMIT_MS = 90_000
/** Maximum milliseconds of a task on the demo, from the agent's first call. */
const DEMO_LIMIT_MS = 15_000
/**
 * Milliseconds until a call is settled and the gateway's log is written, which happens four times a second.
 */
const LOG_DELAY_MS = 750

/** The outcome of a case. */
export interface Outcome {
  readonly ms: number
  /** Milliseconds since the first call. */
  readonly workedMs: number
  readonly calls: number
  /** The faults that were found; empty where the case passed. */
  readonly faults: readonly string[]
  /** The agent's output. */
  readonly out: string
}

/** The environment of a case. */
export interface Stage {
  /** The name of the case's key. */
  readonly key: string
  /** The path of the agent's program. */
  readonly command: string
  readonly gateway: RunningGateway
  /** Counts the signatures that were returned to the strict upstreams. */
  readonly returned: ReturnedSignatures
  readonly stop: AbortSignal
}

/** The agent's prompt, the files that it needs, and the words that its answer must quote. */
interface Assignment {
  readonly prompt: string
  readonly files: ReadonlyMap<string, string>
  readonly words: readonly string[]
  /** The files that the agent must write. */
  readonly written: ReadonlyMap<string, string>
  readonly limitMs: number
}

/** Runs one case in its own home and folder: a task, or the turns of a conversation. */
export async function runCase(one: Case, stage: Stage): Promise<Outcome> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-agent-')))
  try {
    const folder = projectIn(home)
    mkdirSync(folder)
    const { agent, upstream, turns } = one
    if (turns !== undefined) return await converse(one, turns, home, stage)
    return await runTask(one, upstream === 'demo' ? notes(agent) : secrets(agent, folder), home, stage)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Asks the questions of one conversation until one of them fails; every signature must be returned. */
async function converse(one: Case, turns: number, home: string, stage: Stage): Promise<Outcome> {
  const { returned } = stage
  const before = returned.count
  const outcomes: Outcome[] = []
  while (outcomes.length < turns && outcomes.every(({ faults }) => faults.length === 0)) {
    const turn = outcomes.length === 0 ? 'first' : 'later'
    outcomes.push(await runTask(one, question(outcomes.length, projectIn(home)), home, stage, turn))
  }
  const sum = (of: (outcome: Outcome) => number): number => outcomes.reduce((all, each) => all + of(each), 0)
  // Both requests of each question return the earlier steps with calls: 0 + 1, 1 + 2, 2 + 3, …
  const expected = turns ** 2
  const came = returned.count - before
  const faults = [
    ...outcomes.flatMap((outcome) => outcome.faults),
    ...(came < expected ? [`${came} signatures came back, expected at least ${expected}`] : []),
  ]
  return {
    ms: sum(({ ms }) => ms),
    workedMs: sum((outcome) => outcome.workedMs),
    calls: sum(({ calls }) => calls),
    faults,
    out: outcomes.at(-1)?.out ?? '',
  }
}

/** Runs one task, which may be a turn of a conversation, in the project of a home. */
async function runTask(
  { agent, model }: Case,
  { prompt, files, words, written, limitMs }: Assignment,
  home: string,
  { key, command, gateway, stop }: Stage,
  turn?: Task['turn'],
): Promise<Outcome> {
  const folder = projectIn(home)
  const task = { url: gateway.url, key: `sk-${key}`, model, prompt, ...(turn && { turn }) }
  for (const [path, text] of files) writeFileSync(join(folder, path), text)
  for (const [path, text] of agent.files(task)) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  const logged = gateway.logs().length
  const known = usageOf(gateway, key).length
  const ended = await runProgram(command, agent.args(task), {
    cwd: folder,
    limitMs: AGENT_LIMIT_MS,
    stop,
    env: { ...environment(home), ...agent.env(task) },
  })
  const endedAt = Date.now()
  await sleep(LOG_DELAY_MS)
  const usage = usageOf(gateway, key).slice(known)
  const log = gateway.logs().slice(logged)
  const worked = workedMs(log, pathOf(agent, model), endedAt)
  const wrongFiles = [...written]
    .filter(([path, text]) => textOf(join(folder, path)) !== text)
    .map(([path]) => path)
  const found = findFaults({
    ended,
    words,
    wrongFiles,
    usage,
    path: pathOf(agent, model),
    log,
    workedMs: worked,
    limitMs,
    transport: agent.transport ?? 'http',
  })
  return { ms: ended.ms, workedMs: worked, calls: usage.length, faults: found, out: ended.out }
}

function projectIn(home: string): string {
  return join(home, 'project')
}

/** A task that a person would try on the demo: to read a file, or to change it by a shell and a patch. */
function notes({ patches }: Agent): Assignment {
  const lines = [`Meet at the ${word()} gate.`, `Bring ${word()} and a blue folder.`]
  const changed = lines.map((line) => line.replace('gate', 'tower'))
  return {
    prompt: patches ? 'Replace "gate" with "tower" in notes.txt' : 'Read notes.txt and tell me what it says',
    files: new Map([['notes.txt', fileOf(lines)]]),
    words: patches ? [...lines, 'M notes.txt'] : lines,
    written: new Map([['notes.txt', fileOf(patches ? changed : lines)]]),
    limitMs: DEMO_LIMIT_MS,
  }
}

/** The task for the strict upstreams, whose model finds the words in the tool results. */
function secrets({ patches }: Agent, folder: string): Assignment {
  const words = [word(), word()]
  const files = words.map((one, at): [string, string] => [`secret-${at}.txt`, `${secret(one)}\n`])
  const paths = files.map(([name]) => join(folder, name)).join(' and ')
  return {
    prompt:
      `Read the files ${paths} with your tool, and quote the secret word of each.` +
      (patches ? ' Write the words by a patch into words.txt.' : ''),
    files: new Map(files),
    words,
    written: new Map(patches ? [['words.txt', fileOf(words)]] : []),
    limitMs: AGENT_LIMIT_MS,
  }
}

/** One of several questions, each about the words in three more files. */
function question(number: number, folder: string): Assignment {
  const words = [word(), word(), word()]
  const files = words.map((one, at): [string, string] => [`secret-${number}-${at}.txt`, `${secret(one)}\n`])
  const paths = files.map(([name]) => join(folder, name)).join(' and ')
  return {
    prompt: `Read the files ${paths} with your tool, and quote the secret word of each.`,
    files: new Map(files),
    words,
    written: new Map(),
    limitMs: AGENT_LIMIT_MS,
  }
}

function fileOf(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function word(): string {
  return `word-${randomBytes(5).toString('hex')}`
}

/** A clean environment; an unreachable proxy prevents connections to other machines. */
function environment(home: string): Record<string, string> {
  const nowhere = 'http://127.0.0.1:9'
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local/share'),
    XDG_STATE_HOME: join(home, '.local/state'),
    XDG_CACHE_HOME: join(home, '.cache'),
    TMPDIR: home,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    NO_COLOR: '1',
    DO_NOT_TRACK: '1',
    HTTP_PROXY: nowhere,
    HTTPS_PROXY: nowhere,
    http_proxy: nowhere,
    https_proxy: nowhere,
    NO_PROXY: '127.0.0.1,localhost',
    no_proxy: '127.0.0.1,localhost',
  }
}

function usageOf({ dataDir }: RunningGateway, key: string): UsageRow[] {
  const database = databaseOf(dataDir)
  const { id } = database.token(`token-${key}`)
  return database.usage().filter((row) => row.token_id === id)
}
