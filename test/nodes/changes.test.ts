import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ApiKeys } from '../../src/accounts/authentication/api-keys.ts'
import { type Announcer, ChangeFeed } from '../../src/cluster/change-feed.ts'
import { RedisAnnouncements } from '../../src/cluster/redis-announcements.ts'
import type { DataChange } from '../../src/domain/data-change.ts'
import { followChangesOfOtherNodes } from '../../src/gateway/follow-changes.ts'
import { Ledger } from '../../src/accounts/ledger/ledger.ts'
import { Announcements } from '../../src/store/postgres/announcements.ts'
import { NodeMessages } from '../../src/store/node-messages.ts'
import { keyHashes } from '../../src/store/secrets.ts'
import { PATIENT } from '../fixtures/counting-nodes.ts'
import { startFaultProxy } from '../fixtures/fault-proxy.ts'
import { type RedisServer, startRedisServer, withoutRedis } from '../fixtures/redis-server.ts'
import { ENGINES } from '../stores/engines.ts'
import { newToken, SECRETS, storeWithAccount } from '../stores/rows.ts'

const MESSAGES = new NodeMessages(SECRETS)
const SOON = { timeout: 60_000, interval: 10 }

/** A node's key cache and the number of its reads, beside another node on the same database. */
async function twoNodes(
  announcing: () => Announcer & { firstAttempt: Promise<void>; close(): Promise<void> },
) {
  const account = await storeWithAccount()
  const ledger = new Ledger(account.store, 'run')
  const join = async () => {
    const way = announcing()
    const changes = new ChangeFeed(randomUUID(), way)
    await way.firstAttempt
    const heard: DataChange[] = []
    changes.listen((change) => void heard.push(change))
    const keys = new ApiKeys(
      account.store,
      ledger,
      (key) => keyHashes(SECRETS, key),
      (change) => changes.notify(change),
    )
    let rereads = 0
    let fails = 0
    const stored = {
      reread: () => (fails-- > 0 ? Promise.reject(new Error('away')) : Promise.resolve(void (rereads += 1))),
    }
    const following = followChangesOfOtherNodes(changes, keys, stored, () => {})
    onTestFinished(async () => {
      following.stop()
      changes.close()
      await way.close()
    })
    const call = async (key = 'sk-k1'): Promise<string> =>
      (async () => keys.authenticate(key, '127.0.0.1'))().then(
        () => 'let in',
        (error: Error) => error.message,
      )
    return { changes, keys, heard, call, rereads: () => rereads, failTwice: () => void (fails = 2) }
  }
  return { ...account, here: await join(), there: await join() }
}

function sentences(
  announcing: () => Promise<() => Announcer & { firstAttempt: Promise<void>; close(): Promise<void> }>,
) {
  test('an API key that is disabled on one node is refused on another within a second', async () => {
    const { store, userId, tokenId, here, there } = await twoNodes(await announcing())
    expect(await there.call()).toBe('let in')
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    expect(await there.call()).toBe('let in')
    here.keys.forget(tokenId)
    await expect.poll(() => there.call(), SOON).toBe('this API key is disabled')
  })

  test('a key of a user who is disabled on one node is refused on another within a second', async () => {
    const { store, userId, here, there } = await twoNodes(await announcing())
    expect(await there.call()).toBe('let in')
    await store.write('changeUser', { userId, fields: { status: 2 } })
    here.keys.forgetUser(userId)
    await expect.poll(() => there.call(), SOON).toBe('the user of this API key is disabled')
  })

  test('an API key that a node has refused as unknown is accepted once another node has created it', async () => {
    const { store, userId, here, there } = await twoNodes(await announcing())
    expect(await there.call('sk-late')).toBe('this API key is unknown')
    await store.write('createToken', newToken(userId, { key: 'late' }))
    here.keys.forgetKey('late')
    await expect.poll(() => there.call('sk-late'), SOON).toBe('let in')
  })

  test('settings that one node changes are read again by the other nodes, but not by that node itself', async () => {
    const { here, there } = await twoNodes(await announcing())
    there.failTwice()
    here.changes.notify({ of: 'settings' })
    await expect.poll(() => there.rereads()).toBe(1)
    expect(here.rereads()).toBe(0)
  })

  test('a change of 1,000 tokens is announced completely to other nodes', async () => {
    const { here, there } = await twoNodes(await announcing())
    const ids = Array.from({ length: 1_000 }, (_, i) => 9_000_000_000_000_000 + i)
    here.changes.notify({ of: 'tokens', ids })
    const told = (): number[] => there.heard.flatMap((change) => (change.of === 'tokens' ? change.ids : []))
    await expect.poll(told, SOON).toEqual(ids)
  })
}

describe.skipIf(withoutRedis('changes told over Redis'))('changes announced over Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedisServer()
  })
  afterAll(() => server?.stop())
  /** Announcements with a patient connection: one that is lost and made again causes further reads. */
  const patientAnnouncements = (namespace: string) =>
    new RedisAnnouncements(server.url, namespace, MESSAGES, PATIENT.connectionMs)
  const overRedis = () => {
    const namespace = `test:${randomUUID()}`
    return () => patientAnnouncements(namespace)
  }

  sentences(() => Promise.resolve(overRedis()))

  test('changes that a node missed while Redis was unreachable are read again', async () => {
    const { store, userId, tokenId, here, there } = await twoNodes(overRedis())
    expect(await there.call()).toBe('let in')
    await server.kill()
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    here.keys.forget(tokenId)
    expect(await there.call()).toBe('let in')
    await server.restart()
    await expect.poll(() => there.call()).toBe('this API key is disabled')
    await expect.poll(() => there.rereads(), SOON).toBeGreaterThanOrEqual(1)
  })

  test('a node that started without Redis reads settings again once it is connected', async () => {
    await server.kill()
    const { there } = await twoNodes(overRedis())
    await server.restart()
    // Settings are read every minute anyway.
    await expect.poll(() => there.heard, SOON).toContainEqual({ of: 'anything' })
    await expect.poll(() => there.rereads(), SOON).toBeGreaterThanOrEqual(1)
  })

  test('changes that a node may have missed while its connection was lost are read again', async () => {
    const { store, userId, tokenId, there } = await twoNodes(overRedis())
    expect(await there.call()).toBe('let in')
    // A change without an announcement.
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    await server.command(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
    await expect.poll(() => there.call()).toBe('this API key is disabled')
  })

  test('changes that a node could not announce to others are announced as soon as it is connected again', async () => {
    const { store, userId, tokenId, here, there } = await twoNodes(overRedis())
    expect(await there.call()).toBe('let in')
    const clients = String(await server.command(['CLIENT', 'LIST', 'TYPE', 'pubsub']))
    const ids = [...clients.matchAll(/^id=(\d+)/gm)].map(([, id]) => Number(id))
    // The announcing connection only: it was the first to connect.
    await server.command(['CLIENT', 'KILL', 'ID', String(Math.min(...ids))])
    await store.write('enableOrDisableToken', { tokenId, userId, status: 2, nowMs: 0 })
    here.keys.forget(tokenId)
    await expect.poll(() => there.call()).toBe('this API key is disabled')
  })

  test('changes that a node announced at a server which others had left are announced again at the new one', async () => {
    const next = await startRedisServer()
    onTestFinished(() => next.stop())
    const place = { host: '127.0.0.1', port: server.port }
    const address = await startFaultProxy(place)
    onTestFinished(() => address.stop())
    const urls = [`redis://127.0.0.1:${address.port}`, next.url]
    const namespace = `test:${randomUUID()}`
    const announcing = () =>
      new RedisAnnouncements(urls.shift() ?? '', namespace, MESSAGES, PATIENT.connectionMs)
    const { here, there } = await twoNodes(announcing)
    here.changes.notify({ of: 'settings' })
    place.port = next.port
    await server.command(['REPLICAOF', '127.0.0.1', String(next.port)])
    onTestFinished(async () => void (await server.command(['REPLICAOF', 'NO', 'ONE'])))
    await expect.poll(() => there.heard, SOON).toContainEqual({ of: 'anything' })
  })

  test('a listener that is notified of a new connection can announce a text over it at once', async () => {
    const node = patientAnnouncements(`test:${randomUUID()}`)
    onTestFinished(() => node.close())
    const failures: unknown[] = []
    let heard = 0
    node.listen({
      received: () => (heard += 1),
      connected: () => void node.announce('connected').catch((error: unknown) => failures.push(error)),
    })
    await expect.poll(() => heard + failures.length).toBe(1)
    await server.restart()
    await expect.poll(() => heard + failures.length).toBe(2)
    expect(failures).toEqual([])
  })

  test('messages between nodes in an unknown format are ignored', async () => {
    const namespace = `test:${randomUUID()}`
    const { there } = await twoNodes(() => patientAnnouncements(namespace))
    for (const text of ['', 'changed', 'changed n balance 5', '\0'.repeat(99)]) {
      await server.command(['PUBLISH', `${namespace}:changes`, MESSAGES.seal(text)])
    }
    await server.command(['PUBLISH', `${namespace}:changes`, 'changed n user 4'])
    await server.command(['PUBLISH', `${namespace}:changes`, MESSAGES.seal('changed n user 5')])
    await expect.poll(() => there.heard, SOON).toEqual([{ of: 'user', id: 5 }])
  })
})

describe.each(ENGINES.filter(({ name }) => name === 'PostgreSQL'))(
  'changes announced over $name',
  (engine) => {
    sentences(async () => {
      const { place } = await engine.database()
      return () => new Announcements(place, MESSAGES)
    })
  },
)
