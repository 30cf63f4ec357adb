import type { Rate } from '../domain/price.ts'
import type { Model, Settings } from '../domain/settings.ts'
import type { Dialect, RelayedRequest } from './dialects/dialect.ts'
import type { Estimate } from './estimate.ts'

/** A checked request, and the terms that it is admitted on. */
export interface AdmittedRequest {
  /** The client's protocol. */
  readonly dialect: Omit<Dialect, 'read'>
  readonly request: RelayedRequest
  /** The client's own bytes. */
  readonly body: Buffer
  readonly settings: Settings
  readonly model: Model
  readonly rate: Rate
  readonly estimate: Estimate
}
