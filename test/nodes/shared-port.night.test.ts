import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { freePort, statusOn } from '../fixtures/port.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { discard, eventually, newFolder, type Program, runProgram } from '../operations/program.ts'
import { SHARED } from './fixture.ts'

/** A node and the port that reaches it alone. */
interface Node extends Program {
  readonly adminPort: number
}

/** Keeps back what the thread that counts tokens reports while the file in WHILE exists. */
const SLOW_TOKENIZER = `import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'
threads.Worker = class extends threads.Worker {
  on(event, listener) {
    if (event !== 'message' || this.threadName !== 'tokenizer') return super.on(event, listener)
    const later = (message) => existsSync(process.env.WHILE) ? setTimeout(later, 20, message) : listener(message)
    return super.on(event, later)
  }
}
syncBuiltinESMExports()`

const configured = (upstream: ScriptedUpstream, reuse_port: boolean): Configuration => ({
  options: { reuse_port, admin_listen: '127.0.0.1:${ADMIN_PORT}' },
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'))],
  users: [ROOT, user(2, 'ann', [token('ann')])],
})

describe.each(SHARED)('nodes of one machine on $name', (engine) => {
  /** Starts nodes that may share one port. */
  async function site() {
    const database = await engine.database(onTestFinished)
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const port = await freePort()
    const start = async ({ sharesPort = true, env = {} } = {}): Promise<Node> => {
      const adminPort = await freePort()
      const program = await runProgram({
        config: configured(upstream, sharesPort),
        cwd: await patientProgram(),
        folder: newFolder(),
        port,
        env: { DATABASE_URL: database.place, ADMIN_PORT: String(adminPort), ...env },
      })
      onTestFinished(() => discard(program))
      return { ...program, adminPort }
    }
    const ready = ({ adminPort }: Node): Promise<void> =>
      eventually(async () => (await statusOn(adminPort, '/readyz')) === 200, 'the node is ready')
    /** Makes a call on a new connection, which the kernel assigns to one of the nodes. */
    const chat = async (): Promise<number> =>
      (await call(`http://127.0.0.1:${port}`, ask('m'), { key: 'ann' })).status
    return { port, start, ready, chat }
  }

  /** The number of calls that each node has answered. */
  const answered = (nodes: readonly Node[]): Promise<number[]> =>
    Promise.all(
      nodes.map(async ({ adminPort }) => {
        const page = await metricsOf(`http://127.0.0.1:${adminPort}`)
        return page.sum('sluice_requests_total', { path: '/v1/chat/completions', status: '200' })
      }),
    )

  test('a node that starts on a shared port takes no connection before it can serve calls; then both nodes serve, and calls go on at one of them while the other is down', async () => {
    const { start, ready, chat } = await site()
    const one = await start()
    await ready(one)
    const statuses = new Set<number>()
    const isReady = new AbortController()
    const calling = (async () => {
      while (!isReady.signal.aborted) {
        statuses.add(await chat())
        await sleep(1)
      }
    })()
    const two = await start()
    await ready(two)
    isReady.abort()
    await calling
    expect([...statuses]).toEqual([200])
    const earlier = (await answered([one, two])).reduce((sum, count) => sum + count)
    let calls = 0
    while (Math.min(...(await answered([one, two]))) === 0) {
      expect(await chat()).toBe(200)
      calls += 1
      expect(calls).toBeLessThan(500)
    }
    expect((await answered([one, two])).reduce((sum, count) => sum + count)).toBe(earlier + calls)
    one.kill('SIGKILL')
    await one.exit
    const before = (await answered([two]))[0] ?? 0
    for (let n = 0; n < 20; n += 1) expect(await chat()).toBe(200)
    expect(await answered([two])).toEqual([before + 20])
  })

  test('a node listens on a shared port only when its tokenizer is loaded', async () => {
    const { port, start, ready } = await site()
    const folder = newFolder()
    onTestFinished(() => folder.discard())
    const file = join(folder.path, 'slow')
    writeFileSync(file, '')
    const preload = `--import=data:text/javascript,${encodeURIComponent(SLOW_TOKENIZER)}`
    const node = await start({ env: { NODE_OPTIONS: preload, WHILE: file } })
    // Calls could be served from here on.
    await eventually(async () => (await statusOn(node.adminPort, '/metrics')) === 200, 'it serves metrics')
    expect(await statusOn(node.adminPort, '/readyz')).toBe(503)
    expect(await statusOn(port, '/healthz')).toBe(0)
    rmSync(file)
    await ready(node)
    await eventually(async () => (await statusOn(port, '/readyz')) === 200, 'it listens')
  })

  test('without reuse_port, a second node on the port of another ends with a sentence about the port', async () => {
    const { start, ready } = await site()
    const one = await start({ sharesPort: false })
    await ready(one)
    const two = await start({ sharesPort: false })
    let outcome: number | null | undefined | 'serves'
    void two.exit.then(({ code }) => (outcome = code))
    await eventually(async () => {
      if ((await statusOn(two.adminPort, '/readyz')) === 200) outcome = 'serves'
      return outcome !== undefined
    }, 'the second node serves or ends')
    expect(outcome).toBe(1)
    expect(two.err()).toMatch(/^sluice cannot start: port \d+ of 127\.0\.0\.1 is taken: /)
  })
})
