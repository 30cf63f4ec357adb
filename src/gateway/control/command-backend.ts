import type { Environment } from '../../config/environment.ts'
import { sqlitePath } from '../../domain/database-url.ts'
import type { FirstCredentials } from '../seed-accounts.ts'
import type { OperationInput, OperationName, OperationOutput } from '../../management/operations.ts'
import type { QuotaDisplay } from '../../management/gateway-status.ts'

/** Runs the operations of commands, either in the running gateway or in this process. */
export interface CommandBackend {
  /** The unit in which the gateway displays quota. */
  display(): Promise<QuotaDisplay>
  /** Credentials that were created with a new database; undefined if the database is not new. */
  firstCredentials(): Promise<FirstCredentials | undefined>
  /** Runs an operation. Rejects with a `GatewayError` whose message is for the operator. */
  run<Name extends OperationName>(name: Name, input: OperationInput<Name>): Promise<OperationOutput<Name>>
  close(): Promise<void>
}

/** Error: there is no database of a gateway where a command needs one. */
export class NoDatabase extends Error {
  constructor({ dataDir, databaseUrl }: Pick<Environment, 'dataDir' | 'databaseUrl'>) {
    const found =
      sqlitePath(databaseUrl) === undefined
        ? 'at DATABASE_URL: correct it'
        : `in ${dataDir}: set DATA_DIR to its folder`
    super(`there is no database of a gateway ${found}, or start it once with "sluice start"`)
  }
}
