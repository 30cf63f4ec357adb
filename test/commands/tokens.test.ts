import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  callChecks,
  commandOn,
  inGatewayState,
  GATEWAY_STATES,
  type Outcome,
  processOn,
  SECRET,
  untilItRuns,
} from '../fixtures/command.ts'
import { NO_TERMS, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** A token in the output of `--json`, in part. */
interface TokenLine {
  readonly id: number
  readonly name: string
  readonly key: string
  readonly status: number
  readonly created_time: number
}

let fixture: Fixture
let open: Fixture | undefined
afterAll(() => open?.close())
const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'token', ...args)

/** The status of a call with a key, and the code of its error. */
async function said(key: string, model = 'm'): Promise<readonly [number, string?]> {
  const answer = await fixture.chat(key, ask(model))
  if (answer.status === 200) return [200]
  return [answer.status, (answer.json() as { error: { code: string } }).error.code]
}

const rowOf = (name: string) => databaseOf(fixture.gateway.dataDir).token(name)

function started(): Promise<Fixture> {
  return startFixture(
    (upstream) => ({
      options: { max_user_tokens: 3 },
      groups: { default: {}, open: {}, vip: { ratio: 0.5, open: false } },
      models: priced(['m', 'n']),
      channels: [
        channel('m', upstream.baseUrl('m'), { models: ['m', 'n'], groups: ['default', 'open', 'vip'] }),
      ],
      users: [
        ROOT,
        user(2, 'ann', []),
        user(3, 'full', [token('one'), token('two')]),
        user(4, 'star', [], { group: 'vip' }),
        user(5, 'used', [token('off'), token('on')]),
        user(6, 'twin', []),
        user(7, 'poor', [token('low'), token('free')]),
        user(8, 'new', [token('old'), token('older'), token('gone')]),
        user(9, 'late', [token('changed'), token('late')]),
      ],
    }),
    { env: { GATEWAY_SECRET: SECRET } },
  )
}

describe.each(GATEWAY_STATES)('sluice token, %s', (manner) => {
  const during = <T>(work: () => Promise<T>): Promise<T> => inGatewayState(manner, fixture.gateway, work)
  const checks = callChecks(manner)

  beforeAll(async () => {
    await open?.close()
    open = await started()
    fixture = open
    // A running gateway knows these keys from now on.
    for (const key of ['off', 'on', 'low', 'free', 'old', 'older', 'gone']) await said(key)
  })

  test('sluice token create prints only the key on standard output, and the key works at once', async () => {
    const made = await during(() => run('create', '--user', 'ann', '--name', 'laptop', '--unlimited'))
    expect(made.code).toBe(0)
    expect(made.err).toMatch(
      /^The key "laptop" of ann \(id \d+; quota: unlimited; expires: never\), printed once:\n$/,
    )
    expect(made.out).toMatch(/^sk-[A-Za-z0-9]{48}\n$/)
    const key = made.out.trim().slice('sk-'.length)
    await checks.run(async () => {
      expect(await said(key)).toEqual([200])
      expect(fixture.gateway.logs()).not.toContain(key)
    })
  })

  test('sluice token create warns of a name that the user has used already, and of models without a channel', async () => {
    const twice = ['create', '--user', 'twin', '--name', 'twice', '--unlimited']
    const [first, second] = await during(async () => [
      await run(...twice, '--models', 'm,m-thinking'),
      await run(...twice, '--models', 'm,gtp-4o', '--json'),
    ])
    expect(first?.err).not.toContain('Warning')
    const { id } = await during(async () => {
      const listed = await run('list', '--user', 'twin', '--json')
      return (JSON.parse(listed.out) as TokenLine[]).find(({ name }) => name === 'twice') as TokenLine
    })
    expect(second?.code).toBe(0)
    expect(second?.err).toBe(
      `Warning: twin has a key named "twice" already, with the id ${id}.\nWarning: no channel serves a model named "gtp-4o".\n`,
    )
    expect(JSON.parse(second?.out ?? '')).toMatchObject({ name: 'twice', model_limits: 'm,gtp-4o' })
    expect((await run('disable', String(id))).code).toBe(0)
  })

  test('sluice token create accepts every writable field of a token, and list shows them, the key masked', async () => {
    const before = Math.floor(Date.now() / 1000)
    const everyField = ['create', '--user', 'ann', '--name', 'trial', '--quota', '100000', '--json']
    everyField.push('--expires', '2099-01-31', '--group', 'open', '--models', 'm, n')
    everyField.push('--allow-ips', '127.0.0.1,10.0.0.0/8', '--vendor-routes', '{"acme": "default"}')
    const [made, listed, shown] = await during(async () => [
      await run(...everyField),
      await run('list', '--user', 'ann', '--json'),
      await run('list', '--user', 'ann'),
    ])
    expect(made.code).toBe(0)
    const token = made.json() as TokenLine
    expect(token).toEqual({
      id: token.id,
      user_id: 2,
      name: 'trial',
      key: expect.stringMatching(/^sk-[A-Za-z0-9]{48}$/),
      status: 1,
      created_time: token.created_time,
      accessed_time: 0,
      expired_time: 4_073_500_800,
      remain_quota: 100_000,
      unlimited_quota: false,
      used_quota: 0,
      model_limits_enabled: true,
      model_limits: 'm,n',
      allow_ips: '127.0.0.1\n10.0.0.0/8',
      group: 'open',
      vendor_routes: '{"acme": "default"}',
      guards: [],
      toolsets: [],
      content_log_what: '',
      content_log_sample: null,
      content_log_keep: null,
      ...NO_TERMS,
      left: 100_000,
      left_by: 'key',
      held_quota: 0,
      limits_by: 'operator',
      operator_limits: {
        expired_time: 4_073_500_800,
        remain_quota: 100_000,
        model_limits: 'm,n',
        allow_ips: '127.0.0.1\n10.0.0.0/8',
        group: 'open',
        vendor_routes: '{"acme": "default"}',
      },
      version: expect.any(String),
      DeletedAt: null,
    })
    expect(token.created_time - before).toBeGreaterThanOrEqual(0)
    const masked = `${token.key.slice(0, 4)}**********${token.key.slice(-4)}`
    expect(listed.json()).toContainEqual({ ...token, key: masked })
    expect(shown.out).toMatch(
      /^ *\d+ {2}trial +sk-\w\*{10}\w{4} +enabled +open +100000 \(\$0\.20\) +0 \(\$0\.00\) +none +2099-01-31 00:00Z +-$/m,
    )
    expect(shown.out).not.toContain(token.key)
    const key = token.key.slice('sk-'.length)
    await checks.run(async () => {
      expect(await said(key)).toEqual([200])
      expect(await said(key, 'x')).toEqual([403, 'model_not_allowed'])
    })
  })

  test('sluice token create can limit a key to the given IP addresses', async () => {
    const made = await during(() =>
      run('create', '--user', 'ann', '--name', 'far', '--unlimited', '--allow-ips', '10.0.0.0/8'),
    )
    const key = made.out.trim().slice(3)
    await checks.run(async () => expect(await said(key)).toEqual([403, 'ip_not_allowed']))
  })

  test('after sluice token disable the key is refused at the very next call', async () => {
    const { id } = rowOf('token-off')
    const disabled = await during(() => run('disable', String(id)))
    expect(disabled).toMatchObject({
      code: 0,
      out: `The key "token-off" (id ${id}) is refused from now on.\n`,
      err: '',
    })
    await checks.run(async () => expect(await said('off')).toEqual([401, 'token_disabled']))
    const again = await during(() => run('disable', String(id), '--json'))
    expect(again.json()).toMatchObject({ id, name: 'token-off', key: '**********', status: 2 })
  })

  test('sluice token update sets the budget of a key from the next call, and 0 removes it', async () => {
    const [low, free] = [rowOf('token-low').id, rowOf('token-free').id]
    for (const [id, name] of [
      [low, 'low'],
      [free, 'free'],
    ] as const) {
      const set = await during(() => run('update', String(id), '--budget', '1', '--per', 'day'))
      expect(set.out, set.err).toMatch(
        new RegExp(`^ *${id}  token-${name} .* 0 of 1 \\(\\$0\\.000002\\) per day `, 'm'),
      )
    }
    await checks.run(async () => expect((await said('low'))[1]).toBe('budget_exceeded'))
    const removed = await during(() => run('update', String(free), '--budget', '0', '--json'))
    expect(removed.json()).toMatchObject({ id: free, budget: 0, budget_period: '' })
    await checks.run(async () => expect(await said('free')).toEqual([200]))
  })

  test('sluice token update changes the name and the limits of a key, and an empty text removes a limit', async () => {
    const { id } = rowOf('token-changed')
    const update = (...options: string[]) => during(() => run('update', String(id), '--json', ...options))
    const changed = await update(
      '--name',
      'new',
      '--models',
      'x,y',
      '--allow-ips',
      '10.0.0.0/8',
      '--expires',
      '2099-01-31',
    )
    expect(changed.json(), changed.err).toMatchObject({
      name: 'new',
      model_limits_enabled: true,
      model_limits: 'x,y',
      allow_ips: '10.0.0.0/8',
      expired_time: 4_073_500_800,
    })
    expect((await update('--quota', '1usd')).json()).toMatchObject({
      remain_quota: 500_000,
      unlimited_quota: false,
    })
    const freed = await update('--unlimited', '--models', '', '--allow-ips', '')
    expect(freed.json()).toMatchObject({
      unlimited_quota: true,
      model_limits_enabled: false,
      allow_ips: null,
    })
    await checks.run(async () => expect(await said('changed')).toEqual([200]))
    expect(await update()).toMatchObject({ code: 1, err: expect.stringContaining('expected what to change') })
  })

  test('sluice token list without a user finds keys of all users by name, group, status and last characters', async () => {
    const { id } = rowOf('token-late')
    await during(() => run('disable', String(id)))
    const list = (...options: string[]) => during(() => run('list', ...options))
    const names = async (...options: string[]) =>
      ((await list('--json', ...options)).json() as { items: TokenLine[] }).items.map(({ name }) => name)
    expect(await names('--name', 'N-LAT', '--status', 'disabled')).toEqual(['token-late'])
    expect(await names('--last4', 'late')).toEqual(['token-late'])
    expect(await names('--last4', 'none')).toEqual([])
    expect(await names('--group', 'nowhere')).toEqual([])
    expect((await list('--name', 'n-late')).out).toMatch(new RegExp(`^ *${id}  late +token-late`, 'm'))
    expect(await list('--user', 'ann', '--name', 'x')).toMatchObject({ code: 1 })
  })

  test('after sluice token enable a disabled key is accepted again', async () => {
    const { id } = rowOf('token-on')
    await during(() => run('disable', String(id)))
    if (manner === 'while the gateway runs') expect((await said('on'))[1]).toBe('token_disabled')
    const enabled = await during(() => run('enable', String(id)))
    expect(enabled).toMatchObject({
      code: 0,
      out: `The key "token-on" (id ${id}) is accepted again.\n`,
      err: '',
    })
    await checks.run(async () => expect(await said('on')).toEqual([200]))
  })

  test('sluice token rotate prints only a new key on standard output; the old one is refused at the very next call', async () => {
    const [before, other] = [rowOf('token-old'), rowOf('token-older')]
    const rotated = await during(() => run('rotate', String(before.id)))
    expect(rotated).toMatchObject({
      code: 0,
      err: `The new key "token-old" (id ${before.id}), printed once:\n`,
      out: expect.stringMatching(/^sk-[A-Za-z0-9]{48}\n$/),
    })
    const key = rotated.out.trim().slice('sk-'.length)
    await checks.run(async () => {
      expect((await said('old'))[0]).toBe(401)
      expect(await said(key)).toEqual([200])
      expect(fixture.gateway.logs()).not.toContain(key)
      await expect.poll(() => rowOf('token-old').used_quota).toBeGreaterThan(before.used_quota)
    })
    const again = await during(() => run('rotate', String(other.id), '--json'))
    expect(again.json()).toMatchObject({ id: other.id, key: expect.stringMatching(/^sk-[A-Za-z0-9]{48}$/) })
    await checks.run(async () => expect((await said('older'))[0]).toBe(401))
  })

  test('after sluice token delete the key is refused at the very next call, and its charges stay', async () => {
    const { id } = rowOf('token-gone')
    const deleted = await during(() => run('delete', String(id)))
    expect(deleted).toMatchObject({ code: 0, out: `The key "token-gone" (id ${id}) is deleted.\n`, err: '' })
    await checks.run(async () => expect((await said('gone'))[0]).toBe(401))
    const rows = () => databaseOf(fixture.gateway.dataDir).usage()
    await expect.poll(() => rows().filter(({ token_id }) => token_id === id)).toHaveLength(1)
    expect(await during(() => run('delete', String(id)))).toMatchObject({
      code: 1,
      err: `sluice: there is no token with the id ${id}\n`,
    })
  })

  test('when a user is one below max_user_tokens, exactly one of several simultaneous token creations succeeds', async () => {
    // While a gateway is running, a command is a request to it, in this process or in a separate one.
    const create = manner === 'while the gateway runs' ? commandOn : processOn
    const outcomes = await during(() =>
      Promise.all(
        ['a', 'b', 'c'].map((name) =>
          create(fixture.gateway, 'token', 'create', '--user', 'full', '--name', name, '--unlimited'),
        ),
      ),
    )
    expect(outcomes.filter(({ code }) => code === 0)).toHaveLength(1)
    for (const { code, err } of outcomes) {
      if (code === 1)
        expect(err).toBe('sluice: a user may have 3 tokens at most (max_user_tokens), and this one has 3\n')
    }
    expect(
      databaseOf(fixture.gateway.dataDir)
        .tokens()
        .filter(({ user_id }) => user_id === 3),
    ).toHaveLength(3)
  })

  test("sluice token create refuses a group that is closed to other users, unless it is the user's own group", async () => {
    const [own, other, route] = await during(async () => [
      await run('create', '--user', 'star', '--name', 'a', '--unlimited', '--group', 'vip', '--json'),
      await run('create', '--user', 'ann', '--name', 'b', '--unlimited', '--group', 'vip'),
      await run('create', '--user', 'ann', '--name', 'c', '--unlimited', '--vendor-routes', '{"acme":"vip"}'),
    ])
    expect(own.json()).toMatchObject({ group: 'vip' })
    const sentence = (field: string): string =>
      `sluice: ${field}: "vip" is closed, and not the group of the user "ann"\n`
    expect([other.code, other.err, route.code, route.err]).toEqual([
      1,
      sentence('group'),
      1,
      sentence('vendor_routes'),
    ])
  })

  test('sluice token create creates a key whose expiry has passed, with a notice that it has expired', async () => {
    const made = await during(() =>
      run('create', '--user', 'star', '--name', 'old', '--quota', '5', '--expires', '30'),
    )
    expect(made.err).toContain('Warning: 5 is in quota units; for dollars, write 5usd.\n')
    expect(made.err).toMatch(/quota: 5 \(\$0\.00001\); expired since 1970-01-01 00:00Z\), printed once:\n$/)
    const listed = await run('list', '--user', 'star', '--json')
    expect((listed.json() as TokenLine[]).find(({ name }) => name === 'old')).toMatchObject({ status: 3 })
    const key = made.out.trim().slice(3)
    await checks.run(async () => expect((await said(key))[1]).toBe('token_expired'))
  })

  test('the effects of these commands hold after the next start', () => checks.runAfterStart(fixture.gateway))
})

describe('sluice token', () => {
  // Refusals need no gateway of their own.
  beforeAll(async () => {
    open ??= await started()
    fixture = open
    await untilItRuns(fixture.gateway)
  })

  const create = ['create', '--user', 'star', '--name', 'x']
  test.each([
    [['list', '--user', 'nobody'], 'there is no user "nobody"'],
    [['create', '--user', 'nobody', '--name', 'x', '--unlimited'], 'there is no user "nobody"'],
    [['disable', '99'], 'there is no token with the id 99'],
    [['enable', '99'], 'there is no token with the id 99'],
    [['rotate', '99'], 'there is no token with the id 99'],
    [['delete', '99'], 'there is no token with the id 99'],
    [['disable', 'laptop'], 'expected the id of a token, not "laptop": token list shows it'],
    [
      ['create', '--user', 'star', '--name', '👩‍👩‍👧‍👦'.repeat(51), '--unlimited'],
      'name: expected a text of 1 to 50 characters without spaces around it and without invisible characters',
    ],
    [
      [...create, '--quota', '500000000000001'],
      'remain_quota: expected whole quota units from 0 to 500000000000000, not 500000000000001',
    ],
    [[...create, '--unlimited', '--group', 'nope'], 'group: there is no group "nope" in the configuration'],
    [
      [...create, '--unlimited', '--allow-ips', '10.0.0.0/33'],
      'allow_ips: expected addresses and CIDRs, one a line',
    ],
    [
      [...create, '--unlimited', '--vendor-routes', '{"acme": ""}'],
      'vendor_routes: expected a JSON map from vendors to groups such as {"anthropic": "vip"}, nothing in it empty',
    ],
  ])('sluice token %j is refused with an error message', async (args, sentence) => {
    const { code, out, err } = await run(...args)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err.replace(/^quota: \d+ quota units .*\n/, '')).toBe(`sluice: ${sentence}\n`)
  })

  test.each([
    [[...create], 'expected the quota of the key'],
    [[...create, '--quota', '1', '--unlimited'], 'cannot be used with'],
    [[...create, '--quota', '-1'], 'whole number'],
    [[...create, '--unlimited', '--expires', 'tomorrow'], 'a duration such as 30d or 12h'],
    // As from a variable of the shell that is not set: the key would have no restriction.
    [[...create, '--unlimited', '--allow-ips', ''], 'Expected at least one entry'],
    [[...create, '--unlimited', '--models', ' , '], 'Expected at least one entry'],
    [['create', '--name', 'x', '--unlimited'], "required option '--user <name>'"],
    [['update', '1'], 'expected what to change'],
  ])('sluice token %j is refused, and the supported values are named', async (args, said) => {
    const { code, out, err } = await run(...args)
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain(said)
    expect(err).not.toMatch(/^\s+at /m)
  })
})
