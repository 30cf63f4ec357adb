import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { serve } from '../../src/simulator/server.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../../test/equipment/configuration.ts'
import { databaseOf, type UsageRow } from '../../test/equipment/database.ts'
import { type RunningGateway, startGateway } from '../../test/equipment/gateway.ts'
import { type Agent, CLAUDE_CODE, OPENCODE, QWEN_CODE } from './agents.ts'
import { chatUpstream } from './chat-upstream.ts'
import { commandOf, installAgents } from './install.ts'
import { messagesUpstream } from './messages-upstream.ts'
import { secret } from './model.ts'
import { runProgram } from './run-program.ts'
import { faults } from './verdict.ts'

/** For all cases of one agent together, each its share. */
const AGENT_LIMIT_MS = 120_000
/** Within which a call is settled and the gateway's log is written; it is flushed four times a second. */
const LOG_DELAY_MS = 750
const PACE = { firstTokenMs: 5, tokenMs: 1 }
const CHAT_MODELS = ['qwen3-coder-plus', 'gpt-5-mini']
const MESSAGES_MODELS = ['claude-sonnet-4-5', 'claude-opus-4-7', 'claude-opus-5']

/** An agent, the path of the protocol it speaks, and a model; which channel serves that decides whether it is converted. */
interface Case {
  readonly agent: Agent
  readonly path: '/v1/messages' | '/v1/chat/completions'
  readonly model: string
}

const CASES: readonly Case[] = [
  { agent: CLAUDE_CODE, path: '/v1/messages', model: 'claude-sonnet-4-5' },
  { agent: CLAUDE_CODE, path: '/v1/messages', model: 'claude-opus-4-7' },
  { agent: CLAUDE_CODE, path: '/v1/messages', model: 'claude-opus-5' },
  { agent: CLAUDE_CODE, path: '/v1/messages', model: 'gpt-5-mini' },
  { agent: QWEN_CODE, path: '/v1/chat/completions', model: 'qwen3-coder-plus' },
  { agent: QWEN_CODE, path: '/v1/chat/completions', model: 'claude-sonnet-4-5' },
  { agent: OPENCODE, path: '/v1/chat/completions', model: 'gpt-5-mini' },
  { agent: OPENCODE, path: '/v1/chat/completions', model: 'claude-sonnet-4-5' },
]

function title({ agent, path, model }: Case): string {
  const native = CHAT_MODELS.includes(model) === (path === '/v1/chat/completions')
  return `${agent.name}, ${path}, ${model} (${native ? 'native' : 'converted'})`
}

const keyOf = (at: number): string => `agent${at}`

function configuration(chatUrl: string, messagesUrl: string): Configuration {
  return {
    models: priced([...CHAT_MODELS, ...MESSAGES_MODELS]),
    channels: [
      channel('chat', chatUrl, { models: CHAT_MODELS }),
      channel('messages', messagesUrl, { protocol: 'messages', models: MESSAGES_MODELS }),
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        CASES.map((_, at) => token(keyOf(at))),
      ),
    ],
  }
}

/** Runs one case in a home and a folder of its own; what is wrong with it. */
async function faultsOf(
  at: number,
  { agent, path, model }: Case,
  command: string,
  gateway: RunningGateway,
  stop: AbortSignal,
) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-agent-')))
  try {
    const folder = join(home, 'project')
    mkdirSync(folder)
    const words = [0, 1].map(() => `word-${randomBytes(5).toString('hex')}`)
    const files = words.map((word, place) => {
      const file = join(folder, `secret-${place}.txt`)
      writeFileSync(file, `${secret(word)}\n`)
      return file
    })
    const prompt = `Read the files ${files.join(' and ')} with your tool, and quote the secret word of each.`
    const task = { url: gateway.url, key: `sk-${keyOf(at)}`, model, prompt }
    for (const [name, text] of agent.files(task)) {
      mkdirSync(dirname(join(home, name)), { recursive: true })
      writeFileSync(join(home, name), text)
    }
    const logged = gateway.logs().length
    const ended = await runProgram(command, agent.args(task), {
      cwd: folder,
      limitMs: AGENT_LIMIT_MS / CASES.filter((other) => other.agent === agent).length,
      stop,
      env: { ...environment(home), ...agent.env(task) },
    })
    await sleep(LOG_DELAY_MS)
    const usage = usageOf(gateway, `token-${keyOf(at)}`)
    const found = faults({ ended, words, usage, path, log: gateway.logs().slice(logged) })
    return { ms: ended.ms, found, out: ended.out }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Nothing of the caller's own; and whatever wants to leave this machine meets a closed door. */
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

function usageOf({ dataDir }: RunningGateway, name: string): UsageRow[] {
  const database = databaseOf(dataDir)
  const { id } = database.token(name)
  return database.usage().filter((row) => row.token_id === id)
}

async function main(stop: AbortSignal): Promise<number> {
  const agents = [...new Set(CASES.map(({ agent }) => agent))]
  await installAgents(agents, stop)
  let [passed, failed] = [0, 0]
  for (const agent of agents.filter((one) => commandOf(one) === undefined)) {
    console.log(`left out: ${agent.name}, which cannot be installed here`)
    if (process.env['CI'] === 'true') failed++
  }
  const [chat, messages] = await Promise.all([
    serve(chatUpstream(CHAT_MODELS), PACE),
    serve(messagesUpstream(MESSAGES_MODELS), PACE),
  ])
  let gateway: RunningGateway | undefined
  try {
    gateway = await startGateway({ config: configuration(chat.url, messages.url) })
    for (const [at, one] of CASES.entries()) {
      const command = commandOf(one.agent)
      if (command === undefined || stop.aborted) continue
      const { ms, found, out } = await faultsOf(at, one, command, gateway, stop)
      if (found.length === 0) passed++
      else failed++
      console.log(`${found.length === 0 ? 'passed' : 'FAILED'}: ${title(one)}, ${(ms / 1000).toFixed(1)} s`)
      if (found.length > 0)
        console.log([...found, ...out.trim().split('\n').slice(-12)].map((line) => `    ${line}`).join('\n'))
    }
  } finally {
    await gateway?.discard()
    for (const { server } of [chat, messages]) {
      server.close()
      server.closeAllConnections()
    }
  }
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && !stop.aborted ? 0 : 1
}

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())
process.exitCode = await main(stop.signal)
