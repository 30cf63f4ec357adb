import { setTimeout as delay } from 'node:timers/promises'
import type { HoldFacts } from '../domain/hold.ts'
import type { ManagedUser } from '../domain/profile.ts'
import { DenseSet } from '../domain/dense-set.ts'
import type { Settlement } from '../domain/settlement.ts'
import type { SettledCall } from '../store/ledger-writes.ts'
import type { TokenChange } from '../store/operations/change-token.ts'
import type { KeyedToken } from '../store/operations/keyed-tokens.ts'
import type { UserChange } from '../store/operations/change-user.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { Store } from '../store/store.ts'
import type { AccountSource } from './account-source.ts'
import { type Account, affordable, InsufficientQuota } from './balance.ts'
import { OpenHold } from './open-hold.ts'
import { LocalAccounts } from './local-accounts.ts'

/** How long a settlement that the store refused (a full disk, say) waits before it is tried again. */
const SETTLE_AGAIN_MS = 200

/** The accounts of this node: admits, grows and settles holds. `docs/ledger.md` tells the whole story. */
export class Ledger {
  readonly accounts: AccountSource
  /** The holds not yet resolved. */
  readonly openHolds = new DenseSet<OpenHold>()
  readonly #store: Store
  readonly #owner: string
  /** Holds that are to grow, and for which more is borrowed. */
  readonly #borrowing = new WeakSet<OpenHold>()
  #settling = 0
  #couldWrite = true
  #givenUp = false

  /** `owner` names this run of the process; holds of any other are recovered at start. */
  constructor(store: Store, owner: string, accounts: AccountSource = new LocalAccounts(store)) {
    this.#store = store
    this.#owner = owner
    this.accounts = accounts
  }

  /** Calls whose charge is not durable yet: open holds, and settlements that are being written. */
  get unresolved(): number {
    return this.openHolds.size + this.#settling
  }

  /** Tries whether the store can write, by a write that changes nothing. */
  probe(): Promise<boolean> {
    return this.#noted(this.#store.write('markProgress', { id: '', userId: 0, amount: 0 }))
  }

  /** Whether the last write was made; once it was not, only a \`probe\` can tell. */
  get isWritable(): boolean {
    return this.#couldWrite
  }

  /** Settlements that cannot be written are not tried again: the next start will settle them as a crash. */
  stopRetrying(): void {
    this.#givenUp = true
  }

  /** Settles what runs before this one left open, each at what it is known to have cost. */
  recover(): Promise<{ count: number; quota: number }> {
    return this.#store.write('recover', { owner: this.#owner, nowMs: Date.now() })
  }

  /**
   * Takes `amount` off what the account can spend, in this very turn, or refuses. The hold is queued to be
   * written: the upstream may be called at once, but nothing may reach the caller before it is durable.
   */
  admit(account: Account, amount: number, facts: HoldFacts): OpenHold {
    const free = affordable(account)
    if (amount > free) throw new InsufficientQuota(free, amount)
    take(account, amount)
    const written = this.#write(
      account,
      this.#store.write('hold', {
        ...facts,
        owner: this.#owner,
        tokenId: account.token.id,
        userId: account.user.id,
        amount,
      }),
    )
    const hold = new OpenHold(this, account, facts, amount, written)
    this.openHolds.add(hold)
    return hold
  }

  /**
   * Changes a user's fields and quota. Resolves to the user once that is durable, and quota that was added
   * can be spent; to undefined if there is no such user. Running holds settle against what comes out.
   */
  changeUser(change: UserChange): Promise<ManagedUser | undefined> {
    return this.accounts.changeUser(change)
  }

  /**
   * Changes a token. Resolves to it once that is durable, and calls are admitted by it; to undefined if that
   * user has no such token. A quota that is set is what is left apart from open holds, which settle against
   * it.
   */
  changeToken(change: TokenChange): Promise<KeyedToken | undefined> {
    return this.accounts.changeToken(change)
  }

  /** Called by `OpenHold.grow`. */
  grow(hold: OpenHold, by: number): boolean {
    if (by > affordable(hold.account)) {
      this.#borrowFor(hold, by)
      return false
    }
    take(hold.account, by)
    const { facts, account } = hold
    const userId = account.user.id
    void this.#write(account, this.#store.write('growHold', { id: facts.id, userId, by }))
    return true
  }

  // Once for each time that it grew: a stream asks again with every frame.
  #borrowFor(hold: OpenHold, by: number): void {
    if (this.#borrowing.has(hold)) return
    this.#borrowing.add(hold)
    this.accounts.ensureAffordable(hold.account, by).then(
      () => this.#borrowing.delete(hold),
      () => {},
    )
  }

  /** Called by `OpenHold.mark`. */
  markProgress(hold: OpenHold, amount: number): void {
    const { facts, account } = hold
    const userId = account.user.id
    void this.#write(account, this.#store.write('markProgress', { id: facts.id, userId, amount }))
  }

  /** Called by `OpenHold.settle`. */
  settle(hold: OpenHold, settlement: Settlement): Promise<void> {
    const { account } = hold
    take(account, -hold.amount)
    chargeBoth(account, settlement.quota)
    this.openHolds.delete(hold)
    return this.#settleUntilWritten(hold, settlement)
  }

  // A charge is never given up: while the store cannot take it, it waits.
  async #settleUntilWritten(hold: OpenHold, settlement: Settlement): Promise<void> {
    const { facts, account } = hold
    const row: SettledCall = {
      ...settlement,
      id: facts.id,
      tokenId: account.token.id,
      userId: account.user.id,
      model: facts.model,
      group: facts.group,
      stream: facts.stream,
      priceVersion: facts.priceVersion,
      durationMs: settlement.endedMs - facts.startedMs,
    }
    this.#settling += 1
    try {
      while (!(await this.#settled(account, row))) {
        if (hold.hasWriteFailed) throw this.#undone(account, settlement)
        await delay(SETTLE_AGAIN_MS)
      }
    } finally {
      this.#settling -= 1
    }
  }

  // Neither the hold nor the charge could be written, so that nothing was delivered: it is as if nothing had
  // been asked.
  #undone(account: Account, { quota }: Settlement): StoreUnavailable {
    chargeBoth(account, -quota)
    return new StoreUnavailable('neither the hold of a call nor its charge could be written')
  }

  async #settled(account: Account, row: SettledCall): Promise<boolean> {
    begin(account)
    try {
      await this.#store.write('settle', row)
      this.#couldWrite = true
      return true
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || this.#givenUp) throw error
      this.#couldWrite = false
      return false
    } finally {
      end(account)
    }
  }

  // Never rejects: tells whether it was written.
  async #write(account: Account, written: Promise<void>): Promise<boolean> {
    begin(account)
    const isWritten = await this.#noted(written)
    end(account)
    return isWritten
  }

  #noted(written: Promise<void>): Promise<boolean> {
    return written.then(
      () => (this.#couldWrite = true),
      () => (this.#couldWrite = false),
    )
  }
}

function take({ token, user }: Account, amount: number): void {
  token.hold(amount)
  user.hold(amount)
}

function chargeBoth({ token, user }: Account, quota: number): void {
  token.charge(quota)
  user.charge(quota)
}

function begin({ token, user }: Account): void {
  token.pendingWrites += 1
  user.pendingWrites += 1
}

function end({ token, user }: Account): void {
  token.pendingWrites -= 1
  user.pendingWrites -= 1
}
