import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  callChecks,
  commandOn,
  inGatewayState,
  GATEWAY_STATES,
  type Outcome,
  SECRET,
  untilItRuns,
} from '../fixtures/command.ts'
import { NO_TERMS, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** A user in the output of `--json`. */
interface UserLine {
  readonly id: number
  readonly username: string
  readonly role: number
  readonly status: number
  readonly group: string
  readonly quota: number
  readonly used_quota: number
  readonly request_count: number
}

let fixture: Fixture
let open: Fixture | undefined
afterAll(() => open?.close())
const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'user', ...args)

/** The status of a call with a key, and the code of its error. */
async function said(key: string): Promise<readonly [number, string?]> {
  const answer = await fixture.chat(key, ask('m'))
  if (answer.status === 200) return [200]
  return [answer.status, (answer.json() as { error: { code: string } }).error.code]
}

function started(): Promise<Fixture> {
  return startFixture(
    (upstream) => ({
      groups: { default: {}, vip: { ratio: 0.5, open: false } },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [
        ROOT,
        user(2, 'ann', [token('ann')]),
        user(3, 'poor', [token('poor')], { quota: 0 }),
        user(4, 'off', [token('off')]),
        user(5, 'on', [token('on')]),
        user(6, 'leaver', [token('leaver')]),
        user(7, 'low', [token('low')]),
        user(8, 'raised', [token('raised')]),
      ],
    }),
    { env: { GATEWAY_SECRET: SECRET } },
  )
}

describe.each(GATEWAY_STATES)('sluice user, %s', (manner) => {
  const checks = callChecks(manner)
  const during = <T>(work: () => Promise<T>): Promise<T> => inGatewayState(manner, fixture.gateway, work)

  beforeAll(async () => {
    await open?.close()
    open = await started()
    fixture = open
    // A running gateway knows these users from now on.
    await run('update', 'raised', '--budget', '2usd', '--per', 'month')
    for (const key of ['ann', 'poor', 'off', 'on', 'leaver', 'low', 'raised']) await said(key)
  })

  test('sluice user create creates a user, and sluice user list --json shows all users with the fields of the API', async () => {
    const [made, plain, listed] = await during(async () => [
      await run('create', 'bob', '--role', '10', '--group', 'vip', '--quota', '750000', '--json'),
      await run('create', 'Zoë'),
      await run('list', '--json'),
    ])
    const bob = {
      id: 9,
      username: 'bob',
      role: 10,
      status: 1,
      group: 'vip',
      quota: 750_000,
      unlimited_quota: false,
      used_quota: 0,
      request_count: 0,
      content_log_what: '',
      content_log_sample: null,
      content_log_keep: null,
      ...NO_TERMS,
    }
    expect(made).toMatchObject({ code: 0, err: 'quota: 750000 quota units ($1.50)\n' })
    expect(made.json()).toEqual(bob)
    expect(plain).toMatchObject({
      code: 0,
      out: 'Created the user Zoë (id 10) with the quota 0 ($0.00).\n',
      err: 'Warning: calls are refused until there is a quota, for example by sluice user top-up Zoë 10usd, or sluice user update Zoë --unlimited-quota.\n',
    })
    expect((listed.json() as UserLine[]).map(({ username }) => username)).toEqual([
      'root',
      'ann',
      'poor',
      'off',
      'on',
      'leaver',
      'low',
      'raised',
      'bob',
      'Zoë',
    ])
    expect((listed.json() as UserLine[])[8]).toEqual(bob)
  })

  test('sluice user list shows a table: quota in units and as money, use, requests, status, role and group', async () => {
    await during(async () => {
      await expect.poll(() => databaseOf(fixture.gateway.dataDir).user('ann').used_quota).toBeGreaterThan(0)
    })
    const { code, out } = await run('list')
    const ann = databaseOf(fixture.gateway.dataDir).user('ann')
    const [titles = '', root = '', line = ''] = out.split('\n')
    expect(code).toBe(0)
    expect(titles.trim().split(/ {2,}/)).toEqual([
      'ID',
      'NAME',
      'ROLE',
      'STATUS',
      'GROUP',
      'QUOTA',
      'USED',
      'BUDGET',
      'REQUESTS',
    ])
    expect(root).toMatch(
      /^ *1 {2}root +root +enabled +default +1000000000000 \(\$2,000,000\.00\) +0 \(\$0\.00\) +none +0$/,
    )
    expect(line).toMatch(
      new RegExp(
        `^ *2 {2}ann +user +enabled +default +${ann.quota} \\(\\S+\\) +${ann.used_quota} \\(\\S+\\) +none +1$`,
      ),
    )
    expect(out).not.toContain('\u001B')
  })

  test('sluice user show prints what a user may spend, by what it is limited, and its masked keys', async () => {
    const [shown, json] = await during(async () => [
      await run('show', 'poor'),
      await run('show', 'poor', '--json'),
    ])
    expect(shown).toMatchObject({ code: 0, err: '' })
    expect(shown.out).toMatch(/^name +poor \(id 3\)$/m)
    expect(shown.out).toMatch(/^quota +0 \(\$0\.00\)$/m)
    expect(shown.out).toMatch(/^may spend +0 \(\$0\.00\), limited by the quota of the user$/m)
    expect(shown.out).toMatch(/^ *\d+ +token-poor +\S*\*\S* +enabled /m)
    expect(shown.out + json.out).not.toContain('sk-poor')
    expect(json.json()).toMatchObject({
      username: 'poor',
      quota: 0,
      left: 0,
      tokens: [{ name: 'token-poor' }],
    })
  })

  test('after sluice user disable all keys of the user are refused at the very next call, until sluice user enable', async () => {
    for (const [name, id] of [
      ['off', 4],
      ['on', 5],
    ] as const) {
      const disabled = await during(() => run('disable', name))
      expect(disabled).toMatchObject({ code: 0, err: '' })
      expect(disabled.out).toBe(`${name} (id ${id}) is disabled: every key is refused from now on.\n`)
    }
    await checks.run(async () => expect(await said('off')).toEqual([403, 'user_disabled']))
    if (manner === 'while the gateway runs') expect((await said('on'))[1]).toBe('user_disabled')
    const enabled = await during(() => run('enable', 'on', '--json'))
    expect(enabled.json()).toMatchObject({ username: 'on', status: 1 })
    await checks.run(async () => expect(await said('on')).toEqual([200]))
  })

  test("after sluice user delete all the user's keys are refused at once; usage and charges stay, and the name is free", async () => {
    const deleted = await during(() => run('delete', 'leaver'))
    expect(deleted).toMatchObject({
      code: 0,
      out: 'leaver (id 6) is deleted: every key is refused from now on.\n',
      err: '',
    })
    await checks.run(async () => expect((await said('leaver'))[0]).toBe(401))
    const rows = () => databaseOf(fixture.gateway.dataDir).usage()
    await expect.poll(() => rows().filter(({ user_id }) => user_id === 6)).toHaveLength(1)
    const [again, root] = await during(async () => [
      await run('create', 'leaver'),
      await run('delete', 'root'),
    ])
    expect(again).toMatchObject({ code: 0 })
    expect(root).toMatchObject({
      code: 1,
      err: 'sluice: "root" is the last root user: it cannot be disabled, demoted or deleted\n',
    })
  })

  test('sluice user top-up adds to the quota that a user may spend, at once', async () => {
    if (manner === 'while the gateway runs') expect(await said('poor')).toEqual([403, 'insufficient_quota'])
    const [first, second] = await during(async () => [
      await run('top-up', 'poor', '0.8usd'),
      await run('top-up', 'poor', '100000', '--json'),
    ])
    expect(first).toMatchObject({
      code: 0,
      out: 'poor (id 3) has 400000 ($0.80) now.\n',
      err: 'amount: 400000 quota units ($0.80)\n',
    })
    expect(second.json()).toMatchObject({ username: 'poor', quota: 500_000 })
    await checks.run(async () => {
      expect(await said('poor')).toEqual([200])
      const row = databaseOf(fixture.gateway.dataDir).user('poor')
      expect(row.quota + row.used_quota).toBe(500_000)
    })
  })

  test('sluice user update sets a budget from the next call, list shows it with its use, and 0 removes it', async () => {
    const set = await during(() => run('update', 'low', '--budget', '1', '--per', 'month'))
    expect(set.err).toBe(
      'budget: 1 quota units ($0.000002)\nWarning: 1 is in quota units; for dollars, write 1usd.\n',
    )
    expect(set.out, set.err).toBe('The budget of low (id 7): 0 of 1 ($0.000002) per month.\n')
    await checks.run(async () => expect(await said('low')).toEqual([403, 'budget_exceeded']))
    const changed = await during(() => run('update', 'raised', '--budget', '500000', '--json'))
    expect(changed.json()).toMatchObject({ budget: 500_000, budget_period: 'month', budget_used: 30 })
    const shown = await during(async () => {
      await run('update', 'raised', '--per', 'week')
      await run('update', 'raised', '--per', 'month')
      return run('list')
    })
    expect(shown.out).toMatch(/^ *8 {2}raised .* 30 of 500000 \(\$1\.00\) per month +\d+$/m)
    await during(() => run('update', 'raised', '--budget', '1'))
    if (manner === 'while the gateway runs') expect((await said('raised'))[1]).toBe('budget_exceeded')
    const removed = await during(() => run('update', 'raised', '--budget', '0'))
    expect(removed.out).toBe('The budget of raised (id 8): none.\n')
    await checks.run(async () => expect(await said('raised')).toEqual([200]))
  })

  test('sluice user update lets budgets alone limit a user, and the quota again', async () => {
    await during(() => run('create', 'lab'))
    const unlimited = await during(() => run('update', 'lab', '--unlimited-quota'))
    expect(unlimited.out).toMatch(/^The budget of lab \(id \d+\): none\. Its quota: unlimited\.\n$/)
    const limited = await during(() => run('update', 'lab', '--limited-quota', '--json'))
    expect(limited.json()).toMatchObject({ username: 'lab', quota: 0, unlimited_quota: false, budget: 0 })
    const both = await during(() => run('update', 'lab', '--unlimited-quota', '--limited-quota'))
    expect(both).toMatchObject({ code: 1, err: expect.stringContaining('cannot be used with') })
  })

  test('the effects of these commands hold after the next start', () => checks.runAfterStart(fixture.gateway))

  test('sluice user access-token prints only the new token on standard output, and stores only its HMAC', async () => {
    const issued = await during(
      async (): Promise<[Outcome, Outcome]> => [
        await run('access-token', 'ann'),
        await run('access-token', 'ann', '--json'),
      ],
    )
    const first = issued[0].out.trim()
    const { access_token: second } = issued[1].json() as { access_token: string }
    expect(issued[0].out).toMatch(/^[\w-]{32,}\n$/)
    expect(issued[0].err).toBe('The new access token of ann (id 2), printed once:\n')
    expect(issued[1].json()).toEqual({ id: 2, username: 'ann', access_token: second })
    expect(second).toMatch(/^[\w-]{32,}$/)
    expect(second).not.toBe(first)
    await fixture.gateway.stop()
    const file = readFileSync(join(fixture.gateway.dataDir, 'sluice.db'), 'latin1')
    expect(file.includes(first) || file.includes(second)).toBe(false)
    expect(fixture.gateway.logs()).not.toContain(second)
  })
})

describe('sluice user', () => {
  // Refusals need no gateway of their own.
  beforeAll(async () => {
    open ??= await started()
    fixture = open
    await untilItRuns(fixture.gateway)
  })

  test.each([
    [['disable', 'nobody'], 'there is no user "nobody"'],
    [['delete', 'nobody'], 'there is no user "nobody"'],
    [['enable', 'nobody'], 'there is no user "nobody"'],
    [['show', 'nobody'], 'there is no user "nobody"'],
    [['top-up', 'nobody', '1'], 'there is no user "nobody"'],
    [['update', 'nobody', '--budget', '1'], 'there is no user "nobody"'],
    [['update', 'poor', '--budget', '1'], 'budget_period: expected one of day, week, month'],
    [['update', 'poor', '--per', 'day'], 'budget: expected a budget for that period'],
    [['access-token', 'nobody'], 'there is no user "nobody"'],
    [['create', 'ann'], 'there is a user "ann" already'],
    [['create', ' x'], 'username: expected a text of 1 to 64 characters without spaces around it'],
    [['create', 'x\ny'], 'username: expected a text of 1 to 64 characters without spaces around it'],
    [['create', 'x'.repeat(65)], 'username: expected a text of 1 to 64 characters without spaces around it'],
    [['create', 'x', '--role', '7'], 'role: expected 1 (common user), 10 (admin) or 100 (root)'],
    [['create', 'x', '--group', 'nope'], 'group: there is no group "nope" in the configuration'],
    [
      ['create', 'x', '--quota', '500000000000001'],
      'quota: expected whole quota units from 0 to 500000000000000, not 500000000000001',
    ],
    [
      ['top-up', 'ann', '500000000000000'],
      /^no user may have more than 500000000000000 quota units: this one has \d+, and 500000000000000 more are too many$/,
    ],
    [['top-up', 'ann', '0'], 'amount: expected whole quota units from 1 to 500000000000000, not 0'],
    [['top-up', 'ann', '1.5'], 'expected a whole number of quota units, or dollars such as 10usd, not "1.5"'],
  ])('sluice user %j is refused with an error message', async (args, sentence) => {
    const { code, out, err } = await run(...args)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^(?:\w+: \d+ quota units \(\$[\d.,]+\)\n)?(?:Warning: [^\n]+\n)?sluice: [^\n]+\n$/)
    expect(err.slice(err.lastIndexOf('sluice: ') + 'sluice: '.length, -1)).toEqual(
      typeof sentence === 'string' ? sentence : expect.stringMatching(sentence),
    )
  })
})
