import { deepEqual, equal } from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Behaviour, Whole } from './behaviour.ts'
import type { FullResponse } from './client.ts'
import type { GatewayDatabase, UsageRow } from './database.ts'
import type { Fixture } from './fixture.ts'

/** A response with a body of this content type. */
export function answered(contentType: string, body: string | Buffer): Whole {
  return { kind: 'whole', body, headers: { 'content-type': contentType } }
}

/** A response in JSON. */
export function json(body: object): Whole {
  return answered('application/json', JSON.stringify(body))
}

/** A stream of events with their types. */
export function events(
  ...data: readonly { readonly type: string; readonly [field: string]: unknown }[]
): Behaviour {
  const frames = data.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`)
  return { kind: 'stream', frames, usage: null, ending: 'no done' }
}

/** Makes calls, and compares their cost with the accounts. */
export class ChargedCalls {
  readonly #fixture: Fixture
  readonly #database: GatewayDatabase

  constructor(fixture: Fixture, database: GatewayDatabase) {
    this.#fixture = fixture
    this.#database = database
  }

  /**
   * Makes a call, and checks that token and user were charged as its row says by the time the response was
   * complete.
   */
  async charged(
    model: string,
    behaviour: Behaviour,
    ask: () => Promise<FullResponse>,
  ): Promise<{ answer: FullResponse; row: UsageRow & Readonly<Record<string, unknown>> }> {
    this.#fixture.upstream.script(model, behaviour)
    const before = this.#accounts()
    const answer = await ask()
    const row = this.#database.usageOf(String(answer.headers['x-request-id']))
    if (!row) throw new Error(`no usage row for ${answer.status} ${answer.text.slice(0, 300)}`)
    const after = this.#accounts()
    equal(after.token.used_quota - before.token.used_quota, row.quota)
    equal(before.user.quota - after.user.quota, row.quota)
    equal(after.user.request_count - before.user.request_count, 1)
    return { answer, row: row as UsageRow & Readonly<Record<string, unknown>> }
  }

  /** Makes a call that delivers nothing, and checks that it cost nothing. */
  async uncharged(
    model: string,
    behaviour: Behaviour,
    ask: () => Promise<FullResponse>,
  ): Promise<FullResponse> {
    this.#fixture.upstream.script(model, behaviour)
    const before = this.#accounts()
    const answer = await ask()
    await this.untilSettled()
    deepEqual({ ...this.#accounts().user }, { ...before.user })
    return answer
  }

  /** Settles with the last usage row once no call is in flight. */
  async untilSettled(): Promise<UsageRow | undefined> {
    while (this.#database.openHolds().length > 0) await sleep(5)
    return this.#database.usage().at(-1)
  }

  /** Resolves to the usage row that `work` adds, even if its client did not wait for it. */
  async rowOf(work: () => Promise<unknown>): Promise<UsageRow | undefined> {
    const before = this.#database.usage().length
    await work()
    while (this.#database.usage().length === before) await sleep(5)
    return this.untilSettled()
  }

  #accounts(): {
    token: ReturnType<GatewayDatabase['token']>
    user: ReturnType<GatewayDatabase['user']>
  } {
    return { token: this.#database.token('token-ann'), user: this.#database.user('ann') }
  }
}
