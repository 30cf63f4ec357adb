import type { FirstCredentials } from '../bootstrap/seed-accounts.ts'
import type { OperationInput, OperationName, OperationOutput } from '../management/operations.ts'
import type { QuotaDisplay } from '../management/settings/quota-display.ts'

/** The accounts of a gateway, wherever the work is done. */
export interface CommandBackend {
  /** How the gateway shows quota. */
  display(): Promise<QuotaDisplay>
  /** What the first opening of a new database made; undefined if it is not new. */
  firstCredentials(): Promise<FirstCredentials | undefined>
  /** Does it, or throws a `GatewayError` with a sentence for whoever asked. */
  run<Name extends OperationName>(name: Name, input: OperationInput<Name>): Promise<OperationOutput<Name>>
  close(): Promise<void>
}
