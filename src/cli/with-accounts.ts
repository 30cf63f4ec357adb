import type { CommandBackend } from '../gateway/control/command-backend.ts'
import type { FirstCredentials } from '../gateway/seed-accounts.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { OperationInput, OperationName, OperationOutput } from '../management/operations.ts'
import { plainJson, plainText } from './plain-text.ts'
import type { CommandContext } from './command-context.ts'

/** Maximum length of a printed error message, because a database may send one of any length. */
const MAX_MESSAGE_LENGTH = 4000

/** The options shared by all commands on accounts. */
export interface AccountOptions {
  readonly config?: string
  readonly json?: boolean
}

/**
 * Connects to the running gateway, or opens its data folder if none runs; then runs `work` and disconnects.
 * An error is printed on standard error and sets exit code 1.
 */
export async function runWithAccounts(
  shell: CommandContext,
  options: AccountOptions,
  work: (accounts: CommandBackend) => Promise<void>,
  { createsDatabase = false }: { readonly createsDatabase?: boolean } = {},
): Promise<void> {
  await runReportingErrors(shell, async () => {
    const { readEnvironment } = await import('../config/environment.ts')
    const { openCommandBackend } = await import('../gateway/control/open-command-backend.ts')
    const accounts = await openCommandBackend(readEnvironment(shell.env, options), {
      createsDatabase,
      report: (sentence) => shell.err.write(`${sentence}\n`),
    })
    try {
      await work(accounts)
    } finally {
      const first = await accounts.firstCredentials().catch(() => undefined)
      if (first) shell.err.write(firstCredentialsText(first))
      await accounts.close()
    }
  })
}

type InputOf<Name extends OperationName> = (display: QuotaDisplay) => OperationInput<Name>

/**
 * Runs an operation, and prints its result: as JSON with `--json`, otherwise as the text that `textOf`
 * returns. `input` may be a function, if it depends on the value of a quota unit.
 */
export async function printResult<Name extends OperationName>(
  shell: CommandContext,
  options: AccountOptions,
  operation: Name,
  input: OperationInput<Name> | InputOf<Name>,
  textOf: (result: OperationOutput<Name>, display: QuotaDisplay) => string,
  opening?: { readonly createsDatabase?: boolean },
): Promise<void> {
  const work = async (accounts: CommandBackend): Promise<void> => {
    const result = await accounts.run(
      operation,
      typeof input === 'function' ? (input as InputOf<Name>)(await accounts.display()) : input,
    )
    if (options.json) printJson(shell, result)
    else shell.out.write(textOf(result, await accounts.display()))
  }
  await runWithAccounts(shell, options, work, opening)
}

/** Runs `work`. An error is printed on standard error and sets exit code 1. */
export async function runReportingErrors(shell: CommandContext, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    shell.err.write(await errorText(error))
    shell.exitCode = 1
  }
}

/** Prints one line of JSON. */
export function printJson({ out }: CommandContext, value: unknown): void {
  out.write(`${plainJson(value)}\n`)
}

async function errorText(error: unknown): Promise<string> {
  const { ConfigError, formatDiagnostic } = await import('../config/diagnostics.ts')
  if (error instanceof ConfigError)
    return error.diagnostics.map((diagnostic) => `${formatDiagnostic(diagnostic)}\n`).join('')
  const message = error instanceof Error ? error.message : String(error)
  return `sluice: ${plainText(message.slice(0, MAX_MESSAGE_LENGTH))}\n`
}

function firstCredentialsText({ userId, accessToken, key }: FirstCredentials): string {
  return (
    'The database is new, and a root user was created in it. This is printed once; keep it:\n' +
    `  user id       ${userId}\n  access token  ${accessToken}\n  API key       ${key}\n`
  )
}
