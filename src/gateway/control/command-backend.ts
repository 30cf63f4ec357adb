import type { FirstCredentials } from '../seed-accounts.ts'
import type { OperationInput, OperationName, OperationOutput } from '../../management/operations.ts'
import type { QuotaDisplay } from '../../management/gateway-status.ts'

/** Runs the operations of commands, in the running gateway or in this process. */
export interface CommandBackend {
  /** Units in which the gateway shows quota. */
  display(): Promise<QuotaDisplay>
  /** Credentials created by the first opening of a new database; undefined if the database is not new. */
  firstCredentials(): Promise<FirstCredentials | undefined>
  /** Runs an operation. Rejects with a `GatewayError` whose message is for the operator. */
  run<Name extends OperationName>(name: Name, input: OperationInput<Name>): Promise<OperationOutput<Name>>
  close(): Promise<void>
}
