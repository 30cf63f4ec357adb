import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { stringify } from 'yaml'
import { AMPLE, channel, priced, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { Coverage } from '../../test/fuzz/coverage.ts'
import type { Call } from '../candidates/candidate.ts'
import { readConfig } from '../../src/config/config.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import { startGateway } from '../../src/gateway/main.ts'
import { gatewayRequest } from '../load/requests.ts'
import { CLIENT_KEY, MODELS } from '../load/wire.ts'
import { nextMessage, startHelper } from '../measuring/started.ts'

/**
 * Counts the files and functions that a call passes on the main thread, by V8's precise coverage of warm calls. The
 * gateway runs in this process, from its sources, with no option set. `--files` lists the files.
 */
const ROOT_URL = new URL('../../', import.meta.url).href
const WARM_UP = 20
/** Number of calls. Counted is what ran in all of them, which leaves out the timers of the gateway. */
const CALLS = 5
const CHAT = { method: 'POST', client: 'chat', behaviour: 'burst', bytes: 2_000 } as const
const KINDS: Readonly<Record<string, Call>> = {
  'native streamed chat': { ...CHAT, upstream: 'chat' },
  'chat to messages, streamed': { ...CHAT, upstream: 'messages' },
  'native whole chat': { ...CHAT, behaviour: 'whole', upstream: 'chat' },
}

const { values: options } = parseArgs({
  options: { files: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
})

// Optimized code does not count the functions that it inlines.
for (const tier of ['sparkplug', 'maglev', 'turbofan']) setFlagsFromString(`--no-${tier}`)
const folder = mkdtempSync(join(tmpdir(), 'sluice-code-'))
await using opened = new AsyncDisposableStack()
opened.defer(() => rmSync(folder, { recursive: true, force: true }))
const upstream = opened.use(startHelper('load/lean-upstream.ts'))
const url = `http://127.0.0.1:${await nextMessage<number>(upstream)}/v1`
const configFile = join(folder, 'config', 'gateway.yaml')
mkdirSync(join(folder, 'config'))
writeFileSync(
  configFile,
  stringify({
    models: priced([...MODELS.chat, ...MODELS.messages]),
    channels: (['chat', 'messages'] as const).map((protocol) =>
      channel(protocol, url, { protocol, models: MODELS[protocol] }),
    ),
    users: [ROOT, user(2, 'ann', [token(CLIENT_KEY.slice('sk-'.length), { remain_quota: AMPLE })])],
  }),
)
const environment = { DATA_DIR: join(folder, 'data'), PORT: '0', LOG_LEVEL: 'warn' }
const coverage = new Coverage([`${ROOT_URL}src/`, `${ROOT_URL}packages/`])
const gateway = await startGateway(readConfig(readEnvironment(environment, { config: configFile })))
opened.defer(async () => void (await gateway.close()))

async function make({ path, headers, body }: NonNullable<ReturnType<typeof gatewayRequest>>): Promise<void> {
  const [name = '', value = ''] = headers.trim().split(': ')
  const sent = { [name]: value, 'content-type': 'application/json' }
  const answer = await fetch(gateway.url + path, { method: 'POST', headers: sent, body })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(text)
}

/** The functions that ran since the last time, by the URL of their file and their place in it. */
const ran = (): ReadonlySet<string> =>
  new Set([...coverage.take().keys()].map((key) => key.slice(ROOT_URL.length).replace(/ called$/, '')))

const rows = []
for (const [name, one] of Object.entries(KINDS)) {
  const request = gatewayRequest(one)
  if (!request) continue
  for (let made = 0; made < WARM_UP; made++) await make(request)
  let common: ReadonlySet<string> | undefined
  for (let made = 0; made < CALLS; made++) {
    ran()
    await make(request)
    // The last functions of a settlement run after the client has its answer.
    await sleep(100)
    const functions = ran()
    common = common ? new Set([...common].filter((at) => functions.has(at))) : functions
  }
  const functions = [...(common ?? [])]
  const files = new Set(functions.map((at) => at.replace(/:\d+:\d+$/, '')))
  rows.push({ name, files: [...files].sort(), functions: functions.length })
}

/** The folder of a file that is counted together: of a package, or below `src`. */
const areaOf = (file: string): string => file.split('/').slice(0, 2).join('/')

if (options.json) console.log(JSON.stringify(rows, null, 2))
else {
  console.log('| Call | Files | Functions | Files by folder |\n| --- | --- | --- | --- |')
  for (const { name, files, functions } of rows) {
    const areas = Map.groupBy(files, areaOf)
    const parts = [...areas].sort(([, a], [, b]) => b.length - a.length)
    const list = parts.map(([area, { length }]) => `${area} ${length}`).join(', ')
    console.log(`| ${name} | ${files.length} | ${functions} | ${list} |`)
    if (options.files) console.log(files.join('\n'))
  }
}
