/** A token, its user, and a budget of both. */
type Kind = 't' | 'u' | 'b'
const KINDS: readonly Kind[] = ['t', 'u', 'b']

/**
 * A model of the bank as a few sums: a token, its user and a budget, and each node's leases on these
 * accounts.
 */
export class BankModel {
  readonly accounts: Record<Kind, { remain: number; used: number; leased: number; epoch: number }>
  #budget = 0
  readonly leases = new Map<string, { amount: number; held: number; estimate: number }>()
  readonly #counted = new Set<string>()
  readonly #silent = new Map<string, number>()
  readonly #lost = new Map<string, number>()
  isEnabled = true

  constructor(token: number, user: number) {
    this.accounts = {
      t: { remain: token, used: 0, leased: 0, epoch: 0 },
      u: { remain: user, used: 0, leased: 0, epoch: 0 },
      b: { remain: 0, used: 0, leased: 0, epoch: 0 },
    }
  }

  lease(kind: Kind, node: string): { amount: number; held: number; estimate: number } {
    const lease = this.leases.get(kind + node) ?? { amount: 0, held: 0, estimate: 0 }
    this.leases.set(kind + node, lease)
    return lease
  }

  acquire(node: string, need: number, max: number, budget: number): boolean {
    for (const [silent, minutes] of this.#silent) if (minutes >= 1) this.#reclaim(silent)
    this.#setBudget(budget)
    const free = (kind: Kind): number => this.accounts[kind].remain - this.accounts[kind].leased
    if (!this.isEnabled || (need > 0 && KINDS.some((kind) => free(kind) < need))) return false
    for (const kind of KINDS) {
      const share = Math.max(
        0,
        Math.min(free(kind), Math.max(need, Math.min(max, Math.trunc(free(kind) / 8)))),
      )
      this.lease(kind, node).amount += share
      this.accounts[kind].leased += share
    }
    return true
  }

  apply(node: string, calls: readonly { id: string; quota: number }[], held: number, estimate: number): void {
    this.#move(-(this.#lost.get(node) ?? 0))
    this.#lost.delete(node)
    for (const { id, quota } of calls) {
      if (this.#counted.has(id)) continue
      this.#counted.add(id)
      this.#move(quota)
      for (const kind of KINDS) this.#giveBack(kind, node, quota)
    }
    for (const kind of KINDS)
      Object.assign(this.lease(kind, node), { held, estimate: kind === 'u' ? 0 : estimate })
    this.#silent.delete(node)
  }

  release(node: string, keep: number): void {
    for (const kind of KINDS) this.#giveBack(kind, node, this.lease(kind, node).amount - keep)
  }

  silence(node: string, minutes: number): void {
    this.#silent.set(node, minutes)
  }

  /** Applies the maintenance that another node does for a silent node. */
  maintain(node: string): void {
    const minutes = this.#silent.get(node) ?? 0
    if (minutes >= 1) this.#reclaim(node)
    if (minutes < 16) return
    const { estimate } = this.lease('t', node)
    if (estimate > 0) this.#lost.set(node, (this.#lost.get(node) ?? 0) + estimate)
    this.#move(estimate)
    for (const kind of KINDS) {
      if (estimate > 0) this.#giveBack(kind, node, estimate)
      this.#giveBack(kind, node, this.lease(kind, node).amount)
      this.leases.delete(kind + node)
    }
    this.#silent.delete(node)
  }

  set(kind: 't' | 'u', remain: number): void {
    const isLess = remain < this.accounts[kind].remain
    this.accounts[kind].remain = remain
    if (isLess) this.#recall(kind)
  }

  enable(isEnabled: boolean): void {
    if (isEnabled !== this.isEnabled) this.#recall('t')
    this.isEnabled = isEnabled
  }

  #setBudget(amount: number): void {
    if (amount < this.#budget) this.#recall('b')
    this.accounts.b.remain += amount - this.#budget
    this.#budget = amount
  }

  // Ends the leases, except for what is held.
  #recall(kind: Kind): void {
    this.accounts[kind].epoch += 1
    for (const [name, { amount, held }] of this.leases)
      if (name.startsWith(kind)) this.#giveBack(kind, name.slice(1), amount - held)
  }

  #move(quota: number): void {
    for (const account of Object.values(this.accounts)) {
      account.remain -= quota
      account.used += quota
    }
  }

  #reclaim(node: string): void {
    for (const kind of KINDS) {
      const { amount, held } = this.lease(kind, node)
      this.#giveBack(kind, node, amount - held)
    }
  }

  #giveBack(kind: Kind, node: string, amount: number): void {
    const lease = this.lease(kind, node)
    const back = Math.max(0, Math.min(lease.amount, amount))
    lease.amount -= back
    this.accounts[kind].leased -= back
  }
}
