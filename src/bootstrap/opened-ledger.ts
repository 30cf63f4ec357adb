import type { Config } from '../config/config.ts'
import type { FirstCredentials } from './seed-accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Prune } from './prune.ts'
import type { Announcements } from '../store/postgres/announcements.ts'
import type { Secrets } from '../store/secrets.ts'
import type { IdleThread } from '../store/sqlite/thread.ts'
import type { Store } from '../store/store.ts'

/** What calls are charged on, open and recovered. */
export interface OpenedLedger {
  readonly store: Store
  /** What is the same for all nodes on one database, and for nobody else. */
  readonly databaseId: string
  readonly ledger: Ledger
  readonly firstCredentials: FirstCredentials | undefined
  /** What earlier runs left open and this one settled. */
  readonly recovered: { readonly count: number; readonly quota: number }
  /** Whether calls can be charged at this moment. */
  isReady(): Promise<boolean>
  /** The connection to the other nodes; undefined where there are none. */
  readonly announcements: Announcements | undefined
  /** Keeps the usage log to so many days. */
  readonly prune: Prune
  /** Gives back what was borrowed, and closes the store. */
  close(): Promise<void>
}

/** What an opening is given. */
export interface OpenLedgerOptions {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: StartupLog
  /** One that is started already, if one is. */
  readonly thread: IdleThread | undefined
}

/** What the opening tells the operator, in sentences. */
export interface StartupLog {
  info(sentence: string): void
  warn(sentence: string): void
}
