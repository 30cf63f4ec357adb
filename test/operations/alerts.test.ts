import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { budgetPeriodAt } from '../../src/domain/budget.ts'
import { type AlertReceiver, startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { errorBody, usageText } from '../fixtures/behaviour.ts'
import { type Body, call, type FullResponse } from '../fixtures/client.ts'
import { type Configuration, plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'
import { startMailServer } from '../fixtures/mail-server.ts'
import { dateClock, type MovedClock } from '../fixtures/moved-clock.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { atNight } from '../runner/tier.ts'
import { metricsOf } from './metrics-text.ts'

/** The quota units of five dollars, which is the default threshold. */
const FIVE_DOLLARS = 2_500_000
const BROKEN = { kind: 'status', status: 500, body: errorBody('out of order') } as const
const HOUR = 3_600

const receiver = async (): Promise<AlertReceiver> => {
  const started = await startAlertReceiver()
  onTestFinished(() => started.stop())
  return started
}

type Telling = Pick<Fixture, 'gateway' | 'upstream'> & {
  readonly chat: (key: string, body: Body) => Promise<FullResponse>
}

/** The number of alerts that a gateway has delivered since its start, and will not send again. */
async function deliveredBy({ url }: RunningGateway): Promise<number> {
  return (await metricsOf(url)).sum('sluice_alerts_total', { result: 'delivered' })
}

/** A gateway whose user `ann` has exactly five dollars, so that her first call falls below the threshold. */
async function gatewayTelling(
  alerts: readonly Record<string, unknown>[],
  more: Partial<Configuration> = {},
  clock?: MovedClock,
  root?: string,
): Promise<Telling> {
  const fixture = await startFixture(
    (upstream) => ({
      ...plainConfiguration(upstream.baseUrl('m')),
      users: [ROOT, user(2, 'ann', [token('ann')], { quota: FIVE_DOLLARS })],
      alerts,
      ...more,
    }),
    { ...(clock && { env: clock.env }), ...(root !== undefined && { root }) },
  )
  onTestFinished(() => fixture.close())
  const { gateway, upstream } = fixture
  return { gateway, upstream, chat: (key, body) => fixture.chat(key, body) }
}

test("alert receivers are informed once of a user's low quota, signed, and without prompts and keys", async () => {
  const [told, other] = [await receiver(), await receiver()]
  const { gateway, chat } = await gatewayTelling([
    told.declared('quota.low', 'channel.back'),
    other.declared('channel.resting'),
  ])
  for (let calls = 0; calls < 3; calls += 1) await chat('ann', ask('m'))
  await told.atLeast(1)
  // When a call after the alert was answered, a second alert would have arrived.
  await chat('ann', ask('m'))
  const [alert] = told.received
  expect(alert).toMatchObject({
    type: 'quota.low',
    isSigned: true,
    data: { user_id: 2, username: 'ann', quota: FIVE_DOLLARS - 30, threshold: FIVE_DOLLARS },
  })
  expect(alert?.id).toMatch(/^msg_[0-9a-f]{32}$/)
  expect(Math.abs(Date.parse(alert?.timestamp ?? '') - Date.now())).toBeLessThan(HOUR * 1000)
  expect(alert?.text).not.toMatch(/sk-|"hi"|upstream-key/)
  expect(told.received).toHaveLength(1)
  expect(other.received).toEqual([])
  await expect.poll(() => deliveredBy(gateway)).toBe(1)
})

test('alert receivers are informed once each when a budget reaches 80 % and 100 %', async () => {
  const told = await receiver()
  const budget = { budget: 10_000, budget_period: 'month' }
  const { upstream, chat } = await gatewayTelling([told.declared('budget.80', 'budget.100')], {
    groups: { default: { budget: 27_000, budget_period: 'week' } },
    users: [
      ROOT,
      user(2, 'ann', [token('ann', { budget: 20_000, budget_period: 'day' })], budget),
      user(3, 'bob', [token('bob')]),
    ],
  })
  upstream.script('m', { kind: 'whole', usage: usageText(8_980, 5) })
  for (const key of ['ann', 'ann', 'bob']) {
    const answer = await chat(key, ask('m', { max_tokens: 5 }))
    expect(answer.status, answer.text).toBe(200)
  }
  await told.atLeast(5)
  // Several deliveries are in flight at once, in any order.
  const facts = told.received
    .map(({ type, data }) => ({ type, ...(data as { subject: string }) }))
    .toSorted((a, b) => (a.type < b.type ? -1 : 1))
  const of = (wanted: string) => facts.filter(({ subject }) => subject === wanted)
  const [user100, ...user80] = of('user')
  expect(user100).toMatchObject({ type: 'budget.100', budget_used: 18_000 })
  expect(user80).toEqual([
    {
      type: 'budget.80',
      subject: 'user',
      id: 2,
      name: 'ann',
      budget: 10_000,
      budget_period: 'month',
      budget_used: 9_000,
      budget_resets_at: budgetPeriodAt('month', Date.now()).endMs / 1000,
    },
  ])
  expect(of('token')).toMatchObject([{ type: 'budget.80', name: 'token-ann', budget_used: 18_000 }])
  const group = { id: null, name: 'default', budget: 27_000, budget_period: 'week', budget_used: 27_000 }
  expect(of('group')).toMatchObject([
    { type: 'budget.100', ...group },
    { type: 'budget.80', ...group },
  ])
  expect(told.received.every(({ isSigned }) => isSigned)).toBe(true)
})

atNight(
  'alert receivers are informed of a budget that refuses calls once in each of its periods, even after a restart',
  async () => {
    const told = await receiver()
    const { gateway, upstream, chat } = await gatewayTelling([told.declared('budget.80', 'budget.100')], {
      groups: { default: { budget: 100_000, budget_period: 'week' } },
      users: [
        ROOT,
        user(2, 'ann', [token('ann')], { budget: 10_000, budget_period: 'month' }),
        user(3, 'bob', [token('bob', { budget: 20_000, budget_period: 'day' })]),
        user(4, 'eve', [token('eve')]),
        user(5, 'fay', [token('fay')], { budget: 9_010, budget_period: 'day' }),
      ],
    })
    const facts = (): unknown[] =>
      told.received
        .map(({ type, data }) => {
          const { subject, name, budget_used: used } = data as Record<string, unknown>
          return [subject, name, type, used].join(' ')
        })
        .toSorted()
    // The hold of this call is larger than each of these budgets, of which nothing is used so far.
    const large = ask('m', { max_tokens: 100_000 })
    const refuse = async (): Promise<void> => {
      for (const key of ['ann', 'bob', 'eve', 'ann']) {
        const refused = await chat(key, large)
        expect([refused.status, refused.json().error.code]).toEqual([403, 'budget_exceeded'])
      }
    }
    await refuse()
    await told.atLeast(6)
    const first = [
      'group default budget.100 0',
      'group default budget.80 0',
      'token token-bob budget.100 0',
      'token token-bob budget.80 0',
      'user ann budget.100 0',
      'user ann budget.80 0',
    ]
    expect(facts()).toEqual(first)

    // What a stop interrupts is sent once more after the restart.
    await expect.poll(() => deliveredBy(gateway)).toBe(6)
    await gateway.stop()
    await gateway.restart()
    await refuse()
    upstream.script('m', { kind: 'whole', usage: usageText(8_980, 5) })
    // Uses up nine tenths of the budgets of ann and fay.
    for (const key of ['ann', 'fay']) expect((await chat(key, ask('m', { max_tokens: 5 }))).status).toBe(200)
    await told.atLeast(7)
    expect((await chat('fay', large)).status).toBe(403)
    await told.atLeast(8)
    const later = ['user fay budget.100 9000', 'user fay budget.80 9000']
    expect(facts()).toEqual([...first, ...later].toSorted())
  },
)

test("alert receivers are informed of a user's low quota at the first call, and again only after it was above the threshold", async () => {
  const told = await receiver()
  const { gateway, chat } = await gatewayTelling([told.declared('quota.low')], {
    users: [ROOT, user(2, 'ann', [token('ann')], { quota: 50_000 }), user(3, 'bob', [token('bob')])],
  })
  const set = async (value: number): Promise<void> => {
    const quota = { id: 2, action: 'add_quota', mode: 'override', value }
    const admin = {
      path: '/api/user/manage',
      headers: { authorization: ROOT.access_token, 'gateway-user': '1' },
    }
    expect((await call(gateway.url, quota, admin)).text).toContain('"success":true')
  }
  for (let calls = 0; calls < 3; calls += 1) await chat('ann', ask('m'))
  await told.atLeast(1)
  await set(FIVE_DOLLARS)
  await chat('ann', ask('m'))
  await told.atLeast(2)
  await chat('ann', ask('m'))
  await set(60_000)
  await chat('ann', ask('m'))
  await set(FIVE_DOLLARS + 40)
  await chat('ann', ask('m'))
  await chat('ann', ask('m'))
  await told.atLeast(3)
  expect(told.received.map(({ data }) => (data as { quota: number }).quota)).toEqual([
    49_970,
    FIVE_DOLLARS - 30,
    FIVE_DOLLARS - 20,
  ])
})

test('a delivery to an alert receiver that redirects, fails or is silent is retried, and delays no other receiver', async () => {
  const [redirecting, hidden, failing, silent, healthy] = [
    await receiver(),
    await receiver(),
    await receiver(),
    await receiver(),
    await receiver(),
  ]
  redirecting.answer(() => ({ location: hidden.url }))
  failing.answer(() => 500)
  silent.answer(() => 'silence')
  const told = [redirecting, failing, silent, healthy]
  const { gateway, chat } = await gatewayTelling(told.map((one) => one.declared('quota.low')))
  await chat('ann', ask('m'))
  await Promise.all(told.map((one) => one.atLeast(1)))
  expect(silent.open).toBe(1)
  await Promise.all([redirecting, failing, silent].map((one) => one.atLeast(2)))
  for (const { received } of [redirecting, failing, silent]) {
    const [first, second] = received
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(4_900)
    expect(second).toMatchObject({ id: first?.id, text: first?.text, isSigned: true })
  }
  // All receivers get the same event.
  expect(new Set(told.map(({ received }) => received[0]?.id)).size).toBe(1)
  expect(healthy.received).toHaveLength(1)
  expect(hidden.received).toEqual([])
  for (const reason of ['it responded 500', 'it responded 307', 'it did not answer within 15 seconds'])
    await expect.poll(() => gateway.logs()).toContain(`"reason":"${reason}"`)
})

atNight(
  'an event is dropped after its alert receiver failed for a day, and the next event is sent to that receiver',
  async () => {
    const failing = await receiver()
    const clock = dateClock()
    let movedBy = 0
    /** Never moves it back, because an attempt may come without its clock having been moved. */
    const moveTo = (seconds: number): void => clock.move((movedBy = Math.max(movedBy, seconds)))
    failing.answer(() => {
      moveTo((failing.received.length - 1) * 8 * HOUR)
      return 500
    })
    const { gateway, chat } = await gatewayTelling([failing.declared('quota.low')], {}, clock)
    const count = async (result: string): Promise<number> =>
      (await metricsOf(gateway.url)).sum('sluice_alerts_total', { result })
    await chat('ann', ask('m'))
    for (const attempts of [1, 2, 3]) {
      await expect.poll(() => count('failed')).toBeGreaterThanOrEqual(attempts)
      // Later than the pause before the next attempt, and before the time at which that one fails.
      moveTo((attempts * 8 - 4) * HOUR)
    }
    await expect.poll(() => count('given_up')).toBe(1)
    // The first attempt, and those that fail after 8, 16 and 24 hours.
    expect(failing.received).toHaveLength(4)
    expect(await count('failed')).toBe(3)
    expect(new Set(failing.received.map(({ id }) => id)).size).toBe(1)
    expect(failing.received.every(({ isSigned }) => isSigned)).toBe(true)
    failing.answer(() => 204)
    const quota = { id: 2, action: 'add_quota', mode: 'override', value: FIVE_DOLLARS }
    const admin = {
      path: '/api/user/manage',
      headers: { authorization: ROOT.access_token, 'gateway-user': '1' },
    }
    expect((await call(gateway.url, quota, admin)).text).toContain('"success":true')
    await chat('ann', ask('m'))
    await failing.atLeast(5)
  },
)

test('an alert event that was stored is delivered even if the gateway is killed', async () => {
  const told = await receiver()
  const clock = dateClock()
  const { gateway, chat } = await gatewayTelling([told.declared('quota.low')], {}, clock)
  told.answer(() => 'silence')
  await chat('ann', ask('m'))
  await told.atLeast(1)
  await gateway.kill()
  told.answer(() => 204)
  // An attempt without a result counts as lost after half a minute.
  clock.move(60)
  await gateway.restart()
  await told.atLeast(2)
  const [first, second] = told.received
  expect(second).toMatchObject({ id: first?.id, text: first?.text, isSigned: true })
})

atNight(
  'many simultaneous alert events are delivered once each, only a few of them simultaneously, while calls continue',
  async () => {
    const events = 10_000
    const told = await receiver()
    // Attempts that are held last as long as the calls of this test, however slow the machine is.
    const patient = await patchedProgram([
      {
        file: 'src/alerts/alert-sender.ts',
        text: 'const ATTEMPT_MS = 15_000',
        by: 'const ATTEMPT_MS = 600_000',
      },
    ])
    onTestFinished(() => patient.discard())
    const { gateway, chat } = await gatewayTelling([told.declared('quota.low')], {}, undefined, patient.root)
    // After the first event, the database knows the threshold.
    await chat('ann', ask('m'))
    await told.atLeast(1)
    // What a stop interrupts is sent once more after the restart.
    await expect.poll(() => deliveredBy(gateway)).toBe(1)
    await gateway.stop()
    lowerQuotas(gateway, events)
    const answering = Promise.withResolvers<number>()
    told.answer(() => answering.promise)
    await gateway.restart()
    await told.atLeast(1 + 16)
    const before = await residentBytes(gateway)
    for (let calls = 0; calls < 20; calls += 1) expect((await chat('ann', ask('m'))).status).toBe(200)
    expect(told.received).toHaveLength(1 + 16)
    answering.resolve(204)
    await told.atLeast(1 + events)
    expect(told.mostOpen).toBeLessThanOrEqual(16)
    expect(new Set(told.received.map(({ id }) => id)).size).toBe(1 + events)
    expect((await residentBytes(gateway)) - before).toBeLessThan(100e6)
  },
)

test('alert receivers are informed once of load shedding, and once of a channel in cooldown', async () => {
  const told = await receiver()
  const { gateway, upstream, chat } = await gatewayTelling(
    [told.declared('channel.resting', 'gateway.overloaded')],
    { options: { max_calls: 1 } },
  )
  // On a slow machine, some storms arrive so slowly that nothing is refused for load.
  while (told.received.length === 0) {
    const calmed = Promise.withResolvers<void>()
    upstream.script('m', { kind: 'whole', after: calmed.promise })
    const calls = Array.from({ length: 100 }, () => chat('ann', ask('m')))
    await Promise.race(calls)
    calmed.resolve()
    await Promise.all(calls)
  }
  upstream.script('m', BROKEN)
  for (let calls = 0; calls < 5; calls += 1) expect((await chat('ann', ask('m'))).status).toBe(500)
  await told.atLeast(2)
  expect(told.received.map(({ type, data }) => ({ type, data }))).toEqual([
    { type: 'gateway.overloaded', data: { reason: 'the maximum of calls under way is reached; try again' } },
    {
      type: 'channel.resting',
      data: { channel: 'm', cause: 'server_error', status: 500, models: ['m'], calls_lost: 5 },
    },
  ])
  expect(gateway.isRunning).toBe(true)
})

atNight('once all alert receivers are removed, their pending events are removed as well', async () => {
  const told = await receiver()
  const { gateway, upstream, chat } = await gatewayTelling([told.declared('channel.resting')])
  upstream.script('m', BROKEN)
  for (let calls = 0; calls < 5; calls += 1) await chat('ann', ask('m'))
  await told.atLeast(1)
  const conditions = (): unknown[] => {
    const database = new DatabaseSync(join(gateway.dataDir, 'sluice.db'), { readOnly: true, timeout: 5000 })
    try {
      return database.prepare('select name from alert_conditions').all()
    } finally {
      database.close()
    }
  }
  expect(conditions()).toEqual([{ name: 'channel m' }])
  await gateway.apply({ ...plainConfiguration(upstream.baseUrl('m')), alerts: [] })
  await expect.poll(conditions).toEqual([])
})

/**
 * Adds this number of users with ample quota, and lets all of them fall below the threshold in one
 * transaction.
 */
function lowerQuotas({ dataDir }: RunningGateway, count: number): void {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'), { timeout: 5000 })
  try {
    const columns = database.prepare("select name from pragma_table_info('users')").all()
    const names = columns.map(({ name }) => String(name))
    const values = names.map((name) =>
      name === 'id'
        ? '100 + n'
        : name === 'username'
          ? "'user' || n"
          : name.endsWith('_hash')
            ? 'null'
            : name,
    )
    database.exec(`
      begin;
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
        insert into users (${names.join(', ')}) select ${values.join(', ')} from users, numbers where id = 1;
      update users set quota = 1 where id > 100;
      commit;`)
  } finally {
    database.close()
  }
}

async function residentBytes(gateway: RunningGateway): Promise<number> {
  return (await metricsOf(gateway.url)).sum('sluice_resident_memory_bytes')
}

test('alert receivers are informed of a tool without a price once an hour for each model, channel and tool', async () => {
  const told = await receiver()
  const { chat } = await gatewayTelling([told.declared('price.incomplete')])
  for (const type of ['new_thing', 'new_thing', 'other_thing'])
    await chat('ann', ask('m', { tools: [{ type }] }))
  await told.atLeast(2)
  // What is told later of another tool is the only new alert.
  for (const type of ['new_thing', 'last_thing']) await chat('ann', ask('m', { tools: [{ type }] }))
  await told.atLeast(3)
  const tools = told.received.map(({ type, data }) => [type, data])
  expect(tools).toHaveLength(3)
  for (const tool of ['new_thing', 'other_thing', 'last_thing'])
    expect(tools).toContainEqual(['price.incomplete', { model: 'm', channel: 'm', tool }])
})

atNight(
  'a mail of which a server refuses one address is sent again to that one alone, and counts as failed until then',
  async () => {
    const mails = await startMailServer(false, new Set(['new@example.com']))
    onTestFinished(() => mails.stop())
    const clock = dateClock()
    const { gateway, chat } = await gatewayTelling(
      [{ url: 'mailto:ops@example.com,new@example.com', events: ['quota.low'] }],
      { options: { smtp: { host: '127.0.0.1', port: mails.port, security: 'none', from: 's@example.com' } } },
      clock,
    )
    const count = async (result: string) =>
      (await metricsOf(gateway.url)).sum('sluice_alerts_total', { result })
    await chat('ann', ask('m'))
    await expect.poll(() => count('failed')).toBe(1)
    await expect.poll(() => gateway.logs()).toContain('it refused 1 of 2 addresses')
    clock.move(60)
    await expect.poll(() => count('delivered')).toBe(1)
    expect(mails.received.map(({ to }) => to)).toEqual([['ops@example.com'], ['new@example.com']])
    // Readers recognise the mail by its id.
    expect(new Set(mails.received.map(({ text }) => /^Message-ID: (.*)$/im.exec(text)?.[1])).size).toBe(1)
  },
)

test('a mail that a server refuses for good for some addresses is delivered once the others have it, and the log names those', async () => {
  const mails = await startMailServer(
    false,
    new Set(['old@example.com']),
    new Set(['gone@example.com', 'old@example.com']),
  )
  onTestFinished(() => mails.stop())
  const clock = dateClock()
  const { gateway, chat } = await gatewayTelling(
    [{ url: 'mailto:gone@example.com,ops@example.com,old@example.com', events: ['quota.low'] }],
    { options: { smtp: { host: '127.0.0.1', port: mails.port, security: 'none', from: 's@example.com' } } },
    clock,
  )
  const count = async (result: string) =>
    (await metricsOf(gateway.url)).sum('sluice_alerts_total', { result })
  await chat('ann', ask('m'))
  await expect.poll(() => count('failed')).toBe(1)
  await expect.poll(() => gateway.logs()).toContain('it refused 2 of 3 addresses, gone@example.com for good')
  clock.move(60)
  // The last address is refused for good, too; its mail is not that of a server that takes nothing.
  await expect.poll(() => count('delivered')).toBe(1)
  expect(mails.received.map(({ to }) => to)).toEqual([['ops@example.com']])
})
