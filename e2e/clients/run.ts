import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { type McpServerBehaviour, type Simulator, startSimulator, textTool } from '@sluice/simulator'
import { channel, type Configuration, priced, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { startGateway } from '../../test/fixtures/gateway.ts'
import { startMcpServer } from '../../test/fixtures/mcp.ts'
import { type ScriptedUpstream, startUpstream } from '../../test/fixtures/scripted-upstream.ts'
import { runProgram } from '../agents/run-program.ts'
import { startControlServer } from './control-server.ts'
import { pythonOf } from '../../test/fixtures/python-environment.ts'
import { playScenarios } from './scenario-upstream.ts'

const USAGE = `Runs the official Python clients against the gateway, in a virtual environment of their own.

  npm run test:clients [-- --json] [--all] [CLIENT...]

CLIENT is one of openai, anthropic, batches, cohere, mcp, langchain, compliance, langchain_standard; all of them by default.
--all runs LangChain's standard tests with each client on each kind of model; otherwise each runs on two of them.
--json prints one line of JSON for each test in place of words.
Without Python or its package index the clients are left out and said so; with CI=true that is a failure.`

const CLIENTS = [
  'openai',
  'anthropic',
  'batches',
  'cohere',
  'mcp',
  'langchain',
  'compliance',
  'langchain_standard',
]
/** Keys with two requests and 1,000 tokens an hour, one for each test that uses them up. */
const RATED = ['openai', 'anthropic']
/** Only a client that hangs takes this long, even beside all other tests. */
const RUN_LIMIT_MS = 1_500_000

/** The result of one test, as report.py prints it. */
interface Line {
  readonly client: string
  readonly name: string
  readonly seconds: number
  readonly faults: readonly string[]
}

async function main(stop: AbortSignal): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean' }, all: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  const unknown = positionals.find((name) => !CLIENTS.includes(name))
  if (values.help || unknown !== undefined) {
    console.log(unknown === undefined ? USAGE : `unknown client: ${unknown}\n\n${USAGE}`)
    return unknown === undefined ? 0 : 2
  }
  const python = await pythonOf(import.meta.dirname, stop)
  if ('missing' in python) {
    console.log(`The Python clients are left out: ${python.missing}`)
    console.log(process.env['CI'] ? '0 passed, 1 failed' : '0 passed, 0 failed')
    return process.env['CI'] ? 1 : 0
  }
  const lines = await testWith(
    python.command,
    positionals.length > 0 ? positionals : CLIENTS,
    values.all === true,
    stop,
  )
  for (const line of lines) console.log(values.json ? JSON.stringify(line) : inWords(line))
  const failed = lines.filter(({ faults }) => faults.length > 0).length
  console.log(`${lines.length - failed} passed, ${failed} failed`)
  return failed === 0 && lines.length > 0 ? 0 : 1
}

/** Starts an upstream and a gateway, and runs the tests of these clients against them. */
async function testWith(
  python: string,
  clients: readonly string[],
  isAll: boolean,
  stop: AbortSignal,
): Promise<Line[]> {
  const upstream = await startUpstream()
  playScenarios(upstream)
  const control = await startControlServer(upstream)
  const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  const servers = await Promise.all([
    startMcpServer(toolServer('new', ['2026-07-28'])),
    startMcpServer(toolServer('old', ['2025-11-25', '2025-06-18'])),
  ])
  const stopAll = async (): Promise<void> => {
    control.stop()
    await Promise.all([upstream.stop(), simulator.close(), ...servers.map((server) => server.close())])
  }
  const [recent, old] = servers
  const mcp = {
    servers: [
      { name: 'new', url: recent.url },
      { name: 'old', url: old.url },
    ],
  }
  const config = { ...configuration(upstream, simulator), mcp }
  const gateway = await startGateway({ config }).catch(async (error: unknown) => {
    await stopAll()
    throw error
  })
  try {
    const modules = clients.map((name) => `test_${name}`)
    const { out, timedOut } = await runProgram(python, ['-W', 'ignore', 'report.py', ...modules], {
      cwd: import.meta.dirname,
      env: {
        PATH: process.env['PATH'],
        HOME: join(import.meta.dirname, '.venv'),
        PYTHONPYCACHEPREFIX: join(import.meta.dirname, '.venv', 'compiled'),
        LANGSMITH_TRACING: 'false',
        SLUICE_URL: gateway.url,
        SLUICE_KEY: 'sk-ann',
        SLUICE_LIMITED_KEY: 'sk-limited',
        SLUICE_RATED_KEYS: RATED.map((name) => `sk-${name}`).join(' '),
        UPSTREAM_CONTROL: control.url,
        ...(isAll && { SLUICE_ALL: 'yes' }),
      },
      limitMs: RUN_LIMIT_MS,
      stop,
    })
    const lines = out
      .split('\n')
      .flatMap((line) => (line.startsWith('{"client"') ? [JSON.parse(line) as Line] : []))
    const rest = out.split('\n').filter((line) => line !== '' && !line.startsWith('{"client"'))
    if (timedOut || lines.length === 0)
      lines.push(broken(timedOut ? 'the limit of time was reached' : '', rest))
    return lines
  } finally {
    await gateway.discard()
    await stopAll()
  }
}

/** A channel in front of a simulated provider of each protocol, with the names of gateway.py for its model. */
function simulatedChannels(urls: Simulator): (Record<string, unknown> & { readonly models: string[] })[] {
  const bedrock = { provider: 'bedrock', region: 'us-east-1' }
  const kinds = [
    { name: 'reasoning-chat', protocol: 'chat', url: urls.chatUrl, model: 'demo-reason' },
    { name: 'chat', protocol: 'chat', url: urls.chatUrl, model: 'demo-chat' },
    { name: 'messages', protocol: 'messages', url: urls.messagesUrl, model: 'demo-claude' },
    { name: 'responses', protocol: 'responses', url: urls.responsesUrl, model: 'demo-responses' },
    { name: 'gemini', protocol: 'gemini', url: urls.geminiUrl, model: 'demo-gemini' },
    { name: 'converse', protocol: 'converse', url: urls.bedrockUrl, model: 'demo-bedrock-nova', ...bedrock },
  ]
  return kinds.map(({ name, url, model, ...fields }) => {
    const models = [`gpt-5-claude-4-on-${name}`]
    const model_mapping = { [`gpt-5-claude-4-on-${name}`]: model }
    return { ...channel(`simulated-${name}`, url, { ...fields, models, model_mapping }), models }
  })
}

function configuration(upstream: ScriptedUpstream, simulator: Simulator): Configuration {
  const simulated = simulatedChannels(simulator)
  return {
    options: { retries: 0, local_batches: true },
    models: {
      ...priced(['chat-model', 'messages-model', 'responses-model']),
      ...priced(simulated.flatMap(({ models }) => models)),
      'rerank-model': { price: { request: 0.002 } },
    },
    channels: [
      channel('chat', upstream.baseUrl('chat'), { models: ['chat-model'] }),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages', models: ['messages-model'] }),
      channel('responses', upstream.baseUrl('responses'), {
        protocol: 'responses',
        models: ['responses-model'],
      }),
      channel('rerank', upstream.baseUrl('rerank'), { protocol: 'rerank', models: ['rerank-model'] }),
      ...simulated,
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        token('ann'),
        token('limited', { model_limits_enabled: true, model_limits: 'x' }),
        ...RATED.map((name) => token(name, { rate_limit: { requests: 2, tokens: 1_000, window: '1h' } })),
      ]),
    ],
  }
}

/** A server with what test_mcp.py asks for. */
function toolServer(name: string, versions: readonly string[]): McpServerBehaviour {
  const search = { name: 'search', inputSchema: { type: 'object', properties: { q: { type: 'string' } } } }
  return {
    name,
    versions,
    tools: () => [
      textTool(search, ({ arguments: { q } }) => `found ${String(q)}`),
      textTool({ name: 'slow' }, (given) => {
        given.notify('notifications/progress', { progress: 1, total: 2, message: 'half' })
        return 'done'
      }),
      {
        definition: { name: 'broken', inputSchema: { type: 'object' } },
        answer: () => ({ content: [{ type: 'text', text: 'no luck' }], isError: true }),
      },
    ],
    prompts: [
      {
        definition: { name: 'greet', arguments: [{ name: 'name', required: true }] },
        answer: ({ arguments: given }) => ({
          messages: [{ role: 'user', content: { type: 'text', text: `Hello ${String(given['name'])}` } }],
        }),
      },
    ],
    resources: [
      {
        definition: { uri: 'file:///a', name: 'a' },
        answer: () => ({ contents: [{ uri: 'file:///a', text: 'the text of a' }] }),
      },
    ],
  }
}

function broken(reason: string, rest: readonly string[]): Line {
  return { client: 'report.py', name: 'runs to its end', seconds: 0, faults: [reason, ...rest.slice(-20)] }
}

function inWords({ client, name, seconds, faults }: Line): string {
  const verdict = faults.length === 0 ? 'passed' : 'FAILED'
  const details = faults.flatMap((fault) => fault.trim().split('\n')).map((line) => `\n    ${line}`)
  return `${verdict}: ${client} ${name}, ${seconds} s${details.join('')}`
}

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())
process.exitCode = await main(stop.signal)
