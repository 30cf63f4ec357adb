import type { Loan, LoanRequest } from '../store/bank.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'

/** Timeout of a request for a loan. */
const TIMEOUT_MS = 1_500
/** Maximum number of requests in one batch. */
const BATCH_SIZE = 100

/** A request that waits for the bank. */
export interface PendingLoan {
  /** Builds the request by what is leased when it is sent: other calls may have changed that meanwhile. */
  readonly request: () => LoanRequest
  resolve(loan: Loan | undefined): void
  reject(error: unknown): void
  /** Whether it still waits for an answer. */
  isOpen: boolean
}

/** Queue of requests for loans, in order of arrival. */
export class LoanQueue {
  #waiting: PendingLoan[] = []

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Resolves to the bank's response; rejects with `StoreUnavailable` on timeout. */
  enqueue(request: () => LoanRequest): Promise<Loan | undefined> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((pending) => pending !== pendingLoan)
        pendingLoan.isOpen = false
        reject(new StoreUnavailable('the database that leases quota does not respond'))
      }, TIMEOUT_MS)
      const pendingLoan: PendingLoan = {
        request,
        isOpen: true,
        resolve(loan) {
          clearTimeout(timer)
          resolve(loan)
        },
        reject(error) {
          clearTimeout(timer)
          reject(error)
        },
      }
      this.#waiting.push(pendingLoan)
    })
  }

  /** Queues a request again that could not be answered; false if it has timed out meanwhile. */
  putBack(pending: PendingLoan): boolean {
    if (pending.isOpen) this.#waiting.push(pending)
    return pending.isOpen
  }

  /** Removes the next batch from the queue. */
  takeBatch(): PendingLoan[] {
    const next = this.#waiting.slice(0, BATCH_SIZE)
    this.#waiting = this.#waiting.slice(BATCH_SIZE)
    return next
  }

  /** Rejects all queued requests. */
  rejectAll(error: unknown): void {
    const rejected = this.#waiting
    this.#waiting = []
    for (const pending of rejected) pending.reject(error)
  }
}
