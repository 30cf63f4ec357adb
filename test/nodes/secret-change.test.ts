import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { sluice, sluiceProcess } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf } from '../fixtures/content.ts'
import { ask } from '../fixtures/fixture.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { BASE_ENVIRONMENT, programFolder } from '../fixtures/program.ts'
import { randomFrom } from '../fixtures/random.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { columnsSealedWith, NEW_SECRET, OLD_SECRET } from '../stores/secret-change.ts'
import { newToken, temporaryFolder } from '../stores/rows.ts'
import { byTier } from '../runner/tier.ts'
import { SHARED } from './fixture.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const KILLS = byTier(1, 50)
/** Keys that are only stored: more than the command encrypts in one batch. */
const STORED = byTier(240, 600)
/** Rounds of calls with the new secret alone; at night they try each of these keys. */
const ROUNDS = byTier(2, STORED / 6)
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BOTH = { GATEWAY_SECRET: OLD_SECRET, GATEWAY_SECRET_NEW: NEW_SECRET }

describe.each(SHARED)('the secret of two nodes on $name', (engine) => {
  test('a node that knew the new secret, and was restarted without it before the change, is named, and the secret is not changed', async () => {
    const database = await engine.database()
    const env: Record<string, string> = { DATABASE_URL: database.place, ...BOTH }
    const gateway = await startGateway({ config: {}, env, root: await patientProgram() })
    onTestFinished(() => gateway.discard())
    delete env['GATEWAY_SECRET_NEW']
    await gateway.restart()
    const variables = { DATA_DIR: temporaryFolder(), DATABASE_URL: database.place, ...BOTH }
    const { code, err } = await sluiceProcess(['secret', 'change'], variables)
    expect([code, err]).toEqual([1, expect.stringContaining('do not know the new secret')])
    expect(await database.sql('select * from secret_state')).toEqual([])
  })

  test(`the secret is changed while two nodes serve calls, the command is killed at ${KILLS} random points, and so is a node: every key works all the time, in the end with the new secret alone`, async () => {
    console.info(`seed ${SEED} (SEED=${SEED} repeats the pauses)`)
    const random = randomFrom(SEED)
    const database = await engine.database()
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    upstream.script('m', { kind: 'whole', usage: usageText(10, 5) })
    const env: Record<string, string> = { DATABASE_URL: database.place, GATEWAY_SECRET: OLD_SECRET }
    const config = {
      rate_limits: { global: { requests: 0 }, relay: { requests: 0 } },
      content_log: { what: 'full' },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
    }
    const nodes: RunningGateway[] = []
    for (let node = 0; node < 2; node += 1) {
      const gateway = await startGateway({ config, env, root: await patientProgram() })
      onTestFinished(() => gateway.discard())
      nodes.push(gateway)
    }
    const [one, two] = nodes as [RunningGateway, RunningGateway]
    const store = await database.open(deriveSecrets(OLD_SECRET))
    for (let index = 0; index < STORED; index += 1)
      await store.write('createToken', newToken(ANN.id, { key: `stored${index}`, name: `stored ${index}` }))
    await store.close()

    const keys = ['sk-ann', 'sk-stored0', `sk-stored${STORED - 1}`]
    const failures: string[] = []
    let calls = 0
    let fresh = 0
    /** Calls each node with all keys, and with the access token. */
    const useAll = async (step: string): Promise<void> => {
      for (const gateway of nodes.filter(({ isRunning }) => isRunning)) {
        // Nodes remember keys that were used, so these have to be looked up.
        const unused = Array.from({ length: 3 }, () => `sk-stored${(fresh += 1) % STORED}`)
        for (const key of [...keys, ...unused]) {
          const { status, text } = await call(gateway.url, ask('m'), { key })
          calls += 1
          if (status !== 200)
            failures.push(`${step}: ${key} at node ${nodes.indexOf(gateway)}: ${status} ${text}`)
        }
        const self = await manage(gateway.url, ANN, 'GET /api/user/self')
        if (self.status !== 200) failures.push(`${step}: the access token: ${self.status}`)
      }
    }
    /** Makes a key at a node, which is used from then on. */
    const makeKey = async (gateway: RunningGateway, key: string): Promise<void> => {
      const made = await manage(gateway.url, ANN, 'POST /api/token/', {
        name: key,
        unlimited_quota: true,
        remain_quota: 0,
        expired_time: -1,
      })
      expect(made.status, made.message).toBe(200)
      const [row] = await database.sql(`select id from tokens where name = '${key}'`)
      const shown = await manage<{ key: string }>(
        gateway.url,
        ANN,
        `POST /api/token/${Number(row?.['id'])}/key`,
      )
      keys.push(shown.data.key)
    }
    const contents: string[] = []
    const say = async (gateway: RunningGateway): Promise<void> => {
      const { headers } = await call(gateway.url, ask('m'), { key: 'sk-ann' })
      contents.push(String(headers['x-request-id']))
      await contentOf(gateway.url, ANN, contents.at(-1) ?? '')
    }
    const change = (...args: string[]) =>
      sluice(['secret', 'change', ...args], {
        DATA_DIR: temporaryFolder(),
        DATABASE_URL: database.place,
        ...BOTH,
      })
    /** Runs the command, and kills it at a random point of its usual time. */
    const killed = async (lengthMs: number, ...args: string[]): Promise<void> => {
      const child = spawn(process.execPath, ['bin/sluice.mjs', 'secret', 'change', ...args], {
        cwd: await programFolder(),
        stdio: 'ignore',
        env: { ...BASE_ENVIRONMENT, DATA_DIR: temporaryFolder(), DATABASE_URL: database.place, ...BOTH },
      })
      await sleep(random() * lengthMs)
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }

    await say(one)
    await makeKey(one, 'before')
    const begun = performance.now()
    const variables = { DATA_DIR: temporaryFolder(), DATABASE_URL: database.place, ...BOTH }
    const unprepared = await sluiceProcess(['secret', 'change'], variables)
    expect([unprepared.code, unprepared.err]).toEqual([
      1,
      expect.stringContaining('do not know the new secret'),
    ])
    // The whole work takes about as long as the start of the command.
    const lengthMs = 2 * (performance.now() - begun)
    Object.assign(env, BOTH)
    await one.restart()
    await useAll('one node knows both')
    expect((await change()).code).toBe(1)
    await two.restart()
    await useAll('both nodes know both')

    for (let kill = 0; kill < KILLS; kill += 1) {
      await Promise.all([killed(lengthMs), useAll(`kill ${kill}`)])
      if (kill === KILLS >> 1) {
        await one.kill()
        await one.restart()
      }
    }
    const changed = await change('--json')
    expect(changed).toMatchObject({ code: 0 })
    expect(changed.json()).toMatchObject({ finished: false, unreadable: [] })
    await useAll('changed once')
    await makeKey(two, 'in between')
    await say(two)
    for (let kill = 0; kill < KILLS; kill += 1)
      await Promise.all([killed(lengthMs, '--finish'), useAll(`kill ${kill} of the end`)])
    const finished = await change('--finish', '--json')
    expect([finished.code, finished.err]).toEqual([0, ''])
    expect(finished.json()).toMatchObject({ finished: true })
    await useAll('finished')
    await makeKey(one, 'after')
    await say(one)
    expect(await columnsSealedWith(database, deriveSecrets(OLD_SECRET))).toEqual([])

    env['GATEWAY_SECRET'] = NEW_SECRET
    delete env['GATEWAY_SECRET_NEW']
    await one.restart()
    await two.restart()
    for (let round = 0; round < ROUNDS; round += 1) await useAll('the new secret alone')
    for (const id of contents)
      expect((await contentOf(two.url, ANN, id)).parts).toHaveProperty('request_received')
    expect(failures).toEqual([])
    // Both nodes serve at each kill and in each round, with six keys or more.
    expect(calls).toBeGreaterThan((2 * KILLS + ROUNDS) * 2 * 6)
    await expect(database.open(deriveSecrets(OLD_SECRET))).rejects.toThrow('another secret')
  }, 900_000)
})
