/** What a crash charges for a hold without a progress mark: the prompt of `factsOf`. */
const PROMPT = 5

interface OpenSum {
  readonly token: number
  amount: number
  progress: number
}

/**
 * A model of the ledger of one user with two tokens, as a few sums. The real ledger must agree with it at any
 * time.
 */
export class LedgerModel {
  readonly remain: [number, number]
  readonly used: [number, number]
  user: number
  userUsed: number
  readonly open = new Map<string, OpenSum>()

  constructor(remain: number, user: number) {
    this.remain = [remain, remain]
    this.used = [0, 0]
    this.user = user
    this.userUsed = 0
  }

  held(token?: number): number {
    const holds = [...this.open.values()].filter((hold) => token === undefined || hold.token === token)
    return holds.reduce((sum, { amount }) => sum + amount, 0)
  }

  /** The maximum further hold of the token. */
  free(token: 0 | 1): number {
    return Math.min(this.remain[token] - this.held(token), this.user - this.held())
  }

  settle(id: string, quota: number): void {
    const hold = this.open.get(id)
    if (!hold) throw new Error(`${id} is settled twice`)
    this.open.delete(id)
    const token = hold.token as 0 | 1
    this.remain[token] -= quota
    this.used[token] += quota
    this.user -= quota
    this.userUsed += quota
  }

  mark(id: string, amount: number): void {
    const hold = this.open.get(id)
    if (hold) hold.progress = Math.max(hold.progress, amount)
  }

  /** Charges what a crash leaves; for a hold that was never written, nothing was delivered. */
  crash(isWritten: (id: string) => boolean): void {
    for (const [id, { amount, progress }] of this.open)
      this.settle(id, isWritten(id) ? Math.min(amount, PROMPT + progress) : 0)
  }
}
