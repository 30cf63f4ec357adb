import process from 'node:process'
import { parseArgs } from 'node:util'
import { parse } from 'yaml'
import { serveUpstream, type Simulator, startSimulator } from '@sluice/simulator'
import { demoYaml } from '../../src/cli/demo-config.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../../test/fixtures/gateway.ts'
import { pathOf } from './agents.ts'
import { AGENTS, type Case, CASES, codexNames, isConverted, STRICT_MODELS } from './cases.ts'
import { chatUpstream } from './chat-upstream.ts'
import { geminiUpstream } from './gemini-upstream.ts'
import { commandOf, installAgents, versionAsked } from './install.ts'
import { messagesUpstream } from './messages-upstream.ts'
import { responsesUpstream } from './responses-upstream.ts'
import { type Outcome, runCase, type Stage } from './run-case.ts'
import { ReturnedSignatures } from './signatures.ts'
import { asJson, asTable, type Row } from './table.ts'

const STRICT_PACE = { firstTokenMs: 5, tokenMs: 1, maxWholeMs: 1000 }
const SLOW = /^it took /

const { values: options } = parseArgs({
  options: { json: { type: 'boolean' }, agent: { type: 'string' }, model: { type: 'string' } },
})

const keyOf = (at: number): string => `agent${at}`

type Dialect = keyof typeof STRICT_MODELS

function configuration(demo: Simulator, strict: Readonly<Record<Dialect, string>>): Configuration {
  const { channels = [], models, groups } = parse(demoYaml(demo)) as Configuration
  return {
    groups: groups ?? {},
    models: { ...models, ...priced(DIALECTS.flatMap(namesOf)) },
    channels: [
      ...channels,
      ...DIALECTS.map((protocol) =>
        channel(protocol, strict[protocol], {
          protocol,
          models: namesOf(protocol),
          model_mapping: codexNames(protocol),
        }),
      ),
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

const DIALECTS = ['chat', 'messages', 'responses', 'gemini'] as const

function namesOf(protocol: Dialect): string[] {
  return [...STRICT_MODELS[protocol], ...Object.keys(codexNames(protocol))]
}

/** Reports progress; with `--json`, standard output only has the result. */
function log(text: string): void {
  if (options.json) console.error(text)
  else console.log(text)
}

async function main(stop: AbortSignal): Promise<number> {
  const wanted = CASES.map((one, at) => ({ one, key: keyOf(at) })).filter(
    ({ one: { agent, model } }) =>
      (options.agent ?? agent.command) === agent.command && (options.model ?? model) === model,
  )
  const agents = AGENTS.filter((agent) => wanted.some(({ one }) => one.agent === agent))
  const failure = await installAgents(agents, stop, log)
  const missing = agents.filter((agent) => commandOf(agent) === undefined)
  for (const { name, packageName } of missing) {
    const asked = `${packageName}@${versionAsked(packageName)}`
    log(`NOT INSTALLED: ${name}; npm does not get ${asked} for this machine${failure ? `: ${failure}` : ''}`)
  }
  const returned = new ReturnedSignatures()
  const [demo, chat, messages, responses, gemini] = await Promise.all([
    startSimulator(),
    serveUpstream(chatUpstream(STRICT_MODELS.chat), STRICT_PACE),
    serveUpstream(messagesUpstream(STRICT_MODELS.messages, returned), STRICT_PACE),
    serveUpstream(responsesUpstream(STRICT_MODELS.responses), STRICT_PACE),
    serveUpstream(geminiUpstream(STRICT_MODELS.gemini, returned), STRICT_PACE),
  ])
  const rows: Row[] = []
  let gateway: RunningGateway | undefined
  try {
    const strict = { chat: chat.url, messages: messages.url, responses: responses.url, gemini: gemini.url }
    gateway = await startGateway({ config: configuration(demo, strict) })
    for (const { one, key } of wanted) {
      const command = commandOf(one.agent)
      if (command !== undefined && stop.aborted) continue
      const outcome =
        command === undefined ? undefined : await runWithRetry(one, { key, command, gateway, returned, stop })
      rows.push(rowOf(one, outcome))
      if (outcome) log(summaryOf(one, outcome))
    }
  } finally {
    await gateway?.discard()
    await demo.close()
    for (const { server } of [chat, messages, responses, gemini]) {
      server.close()
      server.closeAllConnections()
    }
  }
  console.log(options.json ? asJson(rows) : asTable(rows))
  const isFailed = rows.some(
    ({ result }) => result === 'failed' || (result === 'not installed' && process.env['CI'] === 'true'),
  )
  return isFailed || stop.aborted || rows.every(({ result }) => result !== 'passed') ? 1 : 0
}

/**
 * Runs a case. A case that is only too slow gets a second attempt, because other processes may have slowed it
 * down.
 */
async function runWithRetry(one: Case, stage: Stage): Promise<Outcome> {
  const first = await runCase(one, stage)
  const isSlow = first.faults.length > 0 && first.faults.every((fault) => SLOW.test(fault))
  return isSlow ? await runCase(one, stage) : first
}

function rowOf(one: Case, outcome: Outcome | undefined): Row {
  const { agent, model, upstream } = one
  const isPassed = outcome?.faults.length === 0
  return {
    agent: agent.name,
    model,
    upstream,
    path: pathOf(agent, model),
    converted: isConverted(one),
    calls: outcome?.calls ?? 0,
    seconds: (outcome?.ms ?? 0) / 1000,
    working: (outcome?.workedMs ?? 0) / 1000,
    result: outcome === undefined ? 'not installed' : isPassed ? 'passed' : 'failed',
    faults: outcome?.faults ?? [],
  }
}

/** A line for a finished case; where it failed, also the faults and the end of the agent's output. */
function summaryOf({ agent, model }: Case, { ms, faults: found, out }: Outcome): string {
  const head = `${found.length === 0 ? 'passed' : 'FAILED'}: ${agent.name}, ${model}, ${(ms / 1000).toFixed(1)} s`
  const more = found.length === 0 ? [] : [...found, ...out.trim().split('\n').slice(-12)]
  return [head, ...more.map((line) => `    ${line}`)].join('\n')
}

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())
process.exitCode = await main(stop.signal)
