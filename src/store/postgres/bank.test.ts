import { describe, expect, onTestFinished, test } from 'vitest'
import { BANKS, bankFixture, exactly, held, report } from '../../../test/ledger/bank-fixture.ts'
import { PATIENCE_MS } from '../../../test/stores/engines.ts'
import { lockRow } from '../../../test/stores/locked-row.ts'
import { newToken, newUser, SECRETS, settledCall } from '../../../test/stores/rows.ts'
import { serializeForOutbox } from '../usage-row.ts'
import { hashKey } from '../secrets.ts'
import { SUM_KINDS } from '../sum-kinds.ts'

const MINUTE = 60

describe.each(BANKS)('the bank on $name', (engine) => {
  test("the quota bank answers a node's first use of a key with token, user and quota leases in one statement", async () => {
    const { node, accounts } = await bankFixture(engine)
    const keyHash = hashKey(SECRETS, 'k1')
    const [loan, unknown] = await node('a').acquire([
      { token: { keyHash }, need: { token: 0, user: 0 }, max: { token: 10_000, user: 20_000 } },
      { token: { keyHash: 'of nobody' }, need: { token: 0, user: 0 }, max: { token: 1, user: 1 } },
    ])
    expect(unknown).toBeUndefined()
    expect(loan).toMatchObject({
      granted: true,
      token: { id: 1, remain_quota: 500_000 },
      user: { id: 1, quota: 1_000_000 },
      tokenState: { account: 't:1', amount: 10_000, free: 490_000, remain: 500_000 },
      userState: { account: 'u:1', amount: 20_000, free: 980_000, remain: 1_000_000 },
    })
    expect(await accounts()).toMatchObject({ token: { leased: 10_000 }, user: { leased: 20_000 } })
  })

  test('the quota bank leases an eighth of the free quota, at least the need of the node, or nothing if the need exceeds it', async () => {
    const { node, accounts } = await bankFixture(engine)
    const ask = (need: number, max: number) =>
      node('a').acquire([{ token: 1, need: { token: need, user: 0 }, max: { token: max, user: max } }])
    expect(await ask(0, 400_000)).toMatchObject([
      { tokenState: { amount: 62_500 }, userState: { amount: 125_000 } },
    ])
    expect(await ask(400_000, 400_000)).toMatchObject([{ granted: true, tokenState: { amount: 462_500 } }])
    const before = await accounts()
    expect(await ask(37_501, 40_000)).toMatchObject([{ granted: false, tokenState: { free: 37_500 } }])
    expect(await accounts()).toEqual(before)
    expect(await ask(37_500, 37_500)).toMatchObject([{ granted: true, tokenState: { free: 0 } }])
  })

  test("the quota bank leases no quota of an unlimited token, but counts the token's use", async () => {
    const { store, node, database } = await bankFixture(engine)
    await store.write(
      'createToken',
      newToken(1, { name: 'free', key: 'k2', remain_quota: 0, unlimited_quota: true }),
    )
    const [loan] = await node('a').acquire([exactly(700, 2)])
    expect(loan).toMatchObject({ granted: true, tokenState: { amount: 0 }, userState: { amount: 700 } })
    const call = report('a', 300).replace('"token_id":1', '"token_id":2')
    await node('a').apply([call], [])
    expect(await database.sql('select remain_quota, used_quota, leased from tokens where id = 2')).toEqual([
      { remain_quota: -300, used_quota: 300, leased: 0 },
    ])
  })

  test("the quota bank leases no quota of an unlimited user, but counts the user's use", async () => {
    const { node, database } = await bankFixture(engine)
    await database.sql('update users set unlimited_quota = 1, quota = 0')
    const [loan] = await node('a').acquire([exactly(700)])
    expect(loan).toMatchObject({ granted: true, tokenState: { amount: 700 }, userState: { amount: 0 } })
    await node('a').apply([report('a', 300)], [])
    expect(await database.sql('select quota, used_quota, leased from users')).toEqual([
      { quota: -300, used_quota: 300, leased: 0 },
    ])
    await database.sql('update users set unlimited_quota = 0')
    expect(await node('a').acquire([exactly(1)])).toMatchObject([{ granted: false }])
  })

  test("the quota bank leases no quota of a disabled, expired or deleted account, but returns the account's row", async () => {
    const { node, database } = await bankFixture(engine)
    for (const [broken, mended] of [
      ['update tokens set status = 2', 'update tokens set status = 1'],
      ['update tokens set deleted_time = 5', 'update tokens set deleted_time = null'],
      ['update tokens set expired_time = 5', 'update tokens set expired_time = -1'],
      ['update users set status = 2', 'update users set status = 1'],
    ] as const) {
      await database.sql(broken)
      expect(await node('a').acquire([exactly(10)])).toMatchObject([{ granted: false, token: { id: 1 } }])
      await database.sql(mended)
    }
    expect(await node('a').acquire([exactly(10)])).toMatchObject([{ granted: true }])
  })

  test('the quota bank stores the details of a call that a node reports', async () => {
    const { node, database } = await bankFixture(engine)
    const call = settledCall({ userId: 1, tokenId: 1 }, 'x', { note: 'cut_arguments' })
    await node('a').apply([serializeForOutbox(call), report('y', 1)], [])
    expect(await database.sql('select id, note from usage_log order by id')).toEqual([
      { id: 'x', note: 'cut_arguments' },
      { id: 'y', note: '' },
    ])
  })

  test('the quota bank counts a call once however often a node reports it, alone and in a batch', async () => {
    const { node, store, accounts } = await bankFixture(engine)
    await node('a').acquire([exactly(1_000)])
    await node('a').apply([report('x', 300), report('x', 300)], [])
    await node('a').apply([report('x', 300), report('y', 50)], [])
    await node('b').apply([report('y', 50)], [])
    expect(await accounts()).toMatchObject({
      token: { remain: 499_650, used: 350, leased: 650 },
      user: { remain: 999_650, used: 350, leased: 650 },
      leases: [
        { account: 't:1', node: 'a', amount: 650 },
        { account: 'u:1', node: 'a', amount: 650 },
      ],
    })
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    expect(await store.read('userById', 1)).toMatchObject({ request_count: 2 })
  })

  test('what a node reported last is charged once, also if the rows were removed from the log before it is reported again', async () => {
    const { node, accounts, database, store } = await bankFixture(engine)
    const charged = async () => [(await accounts()).token.used, (await accounts()).user.used]
    const sums =
      'select kind, sum(quota)::int as quota, sum(requests)::int as requests from usage_sums group by kind'
    await node('a').apply([report('w', 300), report('x', 300)], [])
    await node('a').apply([], [])
    await database.sql('delete from usage_log')
    // What was settled after it may come between its parts.
    await node('a').apply([report('w', 300), report('y', 50)], [])
    await node('a').apply([report('x', 300), report('x', 300), report('z', 7)], [])
    expect(await charged()).toEqual([657, 657])
    expect(await database.sql(`${sums} order by kind`)).toEqual(
      SUM_KINDS.map(({ kind }) => ({ kind, quota: 657, requests: 4 })),
    )
    expect(await database.sql('select id from usage_log order by id')).toEqual([{ id: 'y' }, { id: 'z' }])
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    // A node that leaves has nothing to report again.
    await node('a').apply([report('v', 1)], [])
    expect(await database.sql('select node, ids from last_reports')).toEqual([{ node: 'a', ids: ['v'] }])
    await node('a').leave()
    expect(await database.sql('select node from last_reports')).toEqual([])
  })

  test("the quota bank charges a call that costs more than the node's lease in full, and the lease is then zero", async () => {
    const { node, accounts } = await bankFixture(engine)
    await node('a').acquire([exactly(100)])
    expect((await node('a').apply([report('x', 450)], [])).states).toContainEqual(
      expect.objectContaining({ account: 't:1', amount: 0, remain: 499_550 }),
    )
    expect(await accounts()).toMatchObject({ token: { leased: 0, used: 450 }, leases: [] })
  })

  test('a reported call of a missing token does not delay the charges of other calls', async () => {
    const { node, accounts } = await bankFixture(engine)
    await node('a').apply([report('x', 1).replace('"token_id":1', '"token_id":77'), report('y', 2)], [])
    expect((await accounts()).token.used).toBe(2)
  })

  test('a node that gives leases back to the quota bank keeps the amounts that it states, and a node that leaves keeps none', async () => {
    const { node, accounts, database } = await bankFixture(engine)
    await node('a').acquire([exactly(1_000)])
    await node('a').apply([], [held('t:1', 200), held('u:1', 200)])
    await node('a').release([
      { account: 't:1', keep: 300 },
      { account: 'u:1', keep: 0 },
    ])
    expect(await accounts()).toMatchObject({ token: { leased: 300 }, user: { leased: 0 } })
    await node('a').leave()
    expect(await accounts()).toMatchObject({ token: { leased: 0 }, leases: [] })
    expect(await database.sql('select * from nodes')).toEqual([])
  })

  test("a node that starts again ends the wait of its earlier run's calls", async () => {
    const { node, database } = await bankFixture(engine)
    await node('a').acquire([exactly(500_000)])
    for (const name of ['b', 'c'])
      await node(name).acquire([
        { ...exactly(1), place: { ticket: 1, order: undefined, amount: 1, waits: true } },
      ])
    await node('b').acquire([], [null])
    const waiting = await database.sql('select distinct node from loan_queue')
    expect(waiting).toEqual([{ node: 'c' }])
  })

  test('leased quota of a node that is silent for a minute can be leased to other nodes, except the amount of its open holds', async () => {
    const { node, accounts, setSilence: silent } = await bankFixture(engine)
    await node('a').acquire([exactly(400_000)])
    await node('a').apply([], [held('t:1', 150_000), held('u:1', 150_000)])
    await silent('a', MINUTE - 5)
    expect(await node('b').acquire([exactly(100_001)])).toMatchObject([{ granted: false }])
    await silent('a', MINUTE + 1)
    expect(await node('b').acquire([exactly(350_001)])).toMatchObject([{ granted: false }])
    expect(await node('b').acquire([exactly(350_000)])).toMatchObject([{ granted: true }])
    expect((await accounts()).leases).toMatchObject([
      { account: 't:1', node: 'a', amount: 150_000, held: 150_000 },
      { account: 't:1', node: 'b', amount: 350_000 },
      { account: 'u:1', node: 'a', amount: 150_000 },
      { account: 'u:1', node: 'b', amount: 350_000 },
    ])
  })

  test('a quarter of an hour after a node is lost its held quota is charged by estimate, and the rest is free again', async () => {
    const { node, accounts, setSilence: silent, store, database } = await bankFixture(engine)
    await node('a').acquire([exactly(1_000)])
    await node('a').apply([], [held('t:1', 600, 70), held('u:1', 600)])
    await silent('a', MINUTE + 1)
    await node('b').compare()
    expect(await accounts()).toMatchObject({ token: { leased: 600, used: 0 } })
    await silent('a', 16 * MINUTE + 1)
    await node('b').compare()
    expect(await accounts()).toMatchObject({
      token: { remain: 499_930, used: 70, leased: 0 },
      user: { remain: 999_930, used: 70, leased: 0 },
      leases: [],
    })
    expect(await database.sql('select reason, quota from usage_log')).toEqual([
      { reason: 'lost-node', quota: 70 },
    ])
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    expect(await store.read('userById', 1)).toMatchObject({ request_count: 0 })
  })

  test('when a lost node returns, the charges that it reports replace the estimated charge', async () => {
    const { node, accounts, setSilence: silent, store, database } = await bankFixture(engine)
    await node('a').acquire([exactly(1_000)])
    await node('a').apply([], [held('t:1', 600, 70), held('u:1', 600)])
    await silent('a', 17 * MINUTE)
    await node('b').compare()
    await node('a').apply([report('x', 55)], [])
    expect(await accounts()).toMatchObject({
      token: { remain: 499_945, used: 55, leased: 0 },
      user: { remain: 999_945, used: 55, leased: 0 },
    })
    expect(await database.sql('select reason, quota from usage_log')).toEqual([
      { reason: 'complete', quota: 55 },
    ])
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
    const sums = 'select kind, sum(quota) as quota, sum(failed) as failed from usage_sums group by kind'
    expect(await database.sql(`select kind, quota::int, failed::int from (${sums}) s order by kind`)).toEqual(
      SUM_KINDS.map(({ kind }) => ({ kind, quota: 55, failed: 0 })),
    )
  })

  test('removing quota of an account, disabling or deleting it recalls the leases of nodes; adding quota does not', async () => {
    const { node, accounts, store, database } = await bankFixture(engine)
    const leasedAfter = async (change: () => Promise<unknown>) => {
      await node('a').acquire([exactly(1_000)])
      await change()
      const { token, user } = await accounts()
      return [token.leased, token.epoch, user.leased, user.epoch]
    }
    const quota = (mode: 'add' | 'override', value: number) =>
      store.write('changeUser', { userId: 1, quota: { mode, value, maxQuota: 1e12 } })
    const token = (remain_quota: number) =>
      store.write('changeToken', {
        tokenId: 1,
        userId: 1,
        fields: { remain_quota },
        maxQuota: 1e12,
        nowMs: 0,
      })
    expect(await leasedAfter(() => quota('add', 500))).toEqual([1_000, 0, 1_000, 0])
    expect(await leasedAfter(() => quota('override', 900_000))).toEqual([2_000, 0, 0, 1])
    expect(await leasedAfter(() => token(450_000))).toEqual([0, 1, 1_000, 1])
    expect(
      await leasedAfter(() =>
        store.write('enableOrDisableToken', { tokenId: 1, userId: 1, status: 2, nowMs: Date.now() }),
      ),
    ).toEqual([0, 2, 2_000, 1])
    await database.sql('update tokens set status = 1')
    expect(
      await leasedAfter(() => store.write('deleteTokens', { userId: 1, tokenIds: [1], nowSeconds: 1 })),
    ).toEqual([0, 4, 3_000, 1])
  })

  test("charges that a node settled before its lease was recalled count against the account's new quota", async () => {
    const { node, accounts, store } = await bankFixture(engine)
    await node('a').acquire([exactly(1_000)])
    await store.write('changeToken', {
      tokenId: 1,
      userId: 1,
      fields: { remain_quota: 5_000 },
      maxQuota: 1e12,
      nowMs: 0,
    })
    await node('a').apply([report('x', 200)], [])
    expect(await accounts()).toMatchObject({
      token: { remain: 4_800, used: 200, leased: 0 },
      user: { leased: 800 },
    })
  })

  test('simultaneous reports and lease requests of several nodes wait for each other, and none is refused', async () => {
    const { store, database } = await bankFixture(engine)
    for (let id = 2; id <= 6; id += 1)
      await store.write('createToken', newToken(1, { name: `${id}`, key: `k${id}` }))
    const { BankConnection } = await import('./bank-connection.ts')
    const { postgresBank } = await import('./bank.ts')
    const options = { hasRole: true, timeoutMs: PATIENCE_MS }
    const connections = Array.from({ length: 4 }, () => new BankConnection(database.place, options))
    await Promise.all(
      connections.map(async (connection, of) => {
        const bank = postgresBank(connection, `n${of}`)
        for (let round = 0; round < 25; round += 1) {
          const tokens = [1, 2, 3, 4, 5, 6].sort(() => (of % 2 === 0 ? 1 : -1))
          await bank.acquire(tokens.map((token) => exactly(100, token)))
          const calls = tokens.map((token) =>
            report(`${of}-${round}-${token}`, 10).replace('"token_id":1', `"token_id":${token}`),
          )
          // On a slow machine a row stays locked for longer than the bank waits: then the report is repeated.
          let locked: readonly string[]
          do {
            locked = (await bank.apply(calls, [held(`t:${tokens[0] ?? 1}`, 0)])).locked
          } while (locked.length > 0)
          await bank.release([
            { account: 'u:1', keep: 0 },
            { account: 't:3', keep: 0 },
          ])
        }
        await bank.leave()
        await connection.close()
      }),
    )
    const [sums] = await database.sql(
      'select (select used_quota from users) as used, (select sum(leased)::bigint from tokens) as leased, (select leased from users) as of_user',
    )
    expect(sums).toEqual({ used: 4 * 25 * 6 * 10, leased: 0, of_user: 0 })
    expect(await store.read('findUnbalancedAccounts')).toMatchObject({ tokens: [], users: [], days: [] })
  })

  test('while another session keeps a row locked, the quota bank answers a look-up with the committed rows, lends nothing, and remembers the lock', async () => {
    const { node, database, accounts } = await bankFixture(engine)
    const bank = node('a')
    await bank.acquire([exactly(100)])
    const before = await accounts()
    const row = await lockRow(database.place, 'select 1 from users where id = 1')
    onTestFinished(() => row.unlock())
    const lookUp = {
      token: { keyHash: hashKey(SECRETS, 'k1') },
      isLookUp: true,
      need: { token: 0, user: 0 },
      max: { token: 10_000, user: 20_000 },
    }
    expect(await bank.acquire([exactly(10), lookUp])).toMatchObject([
      'locked',
      {
        granted: true,
        token: { id: 1, remain_quota: 500_000 },
        user: { id: 1, quota: 1_000_000 },
        tokenState: { account: 't:1', amount: 100, free: 499_900 },
        userState: { account: 'u:1', amount: 100, free: 999_900 },
      },
    ])
    const other = node('b')
    await other.acquire([lookUp])
    expect((await other.apply([], [])).locked).toEqual(['u:1'])
    expect(await accounts()).toEqual(before)
  })

  test.each(['users', 'tokens'])(
    'while another session keeps a row locked, a node keeps all that it has borrowed for that user, and returns that of others (%s)',
    async (table) => {
      const { store, node, database } = await bankFixture(engine)
      const bank = node('a')
      await store.write('createUser', newUser({ username: 'bob' }))
      await store.write('createToken', newToken(2, { name: 'other', key: 'k2' }))
      const budget = 'b:day:2026-11-01:t:1' as const
      const budgets = [{ account: budget, amount: 1_000, need: 10, max: 10 }]
      await database.sql('update tokens set budget = 1000 where id = 1')
      await bank.acquire([{ ...exactly(100), budgets }, exactly(100, 2)])
      const row = await lockRow(database.place, `select 1 from ${table} where id = 1`)
      onTestFinished(() => row.unlock())
      const all = ['u:1', 't:1', budget, 'u:2', 't:2'] as const
      const states = await bank.release(all.map((account) => ({ account, keep: 0 })))
      expect(states.map(({ account, amount }) => [account, amount])).toEqual([
        ['u:2', 0],
        ['t:2', 0],
      ])
      const left = 'select account, amount from leases order by account'
      expect(await database.sql(left)).toEqual([
        { account: budget, amount: 10 },
        { account: 't:1', amount: 100 },
        { account: 'u:1', amount: 100 },
      ])
    },
  )

  test("the relay's database role can read and call the quota bank, but cannot write balances or charges directly", async () => {
    const { connection } = await bankFixture(engine)
    expect(await connection.query('select quota from users', [])).toHaveLength(1)
    for (const forbidden of [
      'update users set quota = quota + 1',
      'update tokens set remain_quota = 1',
      'update leases set amount = 1',
      "delete from usage_log where id = 'x'",
      "insert into users (username) values ('x')",
      "select bank_charge('a', '[]')",
      "select bank_move_leased('u:1', 5)",
    ]) {
      await expect(connection.query(forbidden, [])).rejects.toThrow(/permission denied/)
    }
  })
})
