import { resolve } from 'node:path'
import type { Command } from 'commander'
import { JSON_OUTPUT } from './options.ts'
import { Progress } from './progress.ts'
import type { Shell } from './shell.ts'
import { printJson, withAccounts } from './with-accounts.ts'

const HELP = `
The copy is a consistent snapshot of the accounts; the gateway may run meanwhile. The copy does not contain the secret that its
keys are encrypted with: keep the secret too, in another place. docs/operations.md describes how to restore the copy.
Example:
  sluice backup /backups/sluice-$(date +%F).db`

interface BackupOptions {
  readonly force?: boolean
  readonly json?: boolean
}

/** `sluice backup`. */
export function addBackupCommand(program: Command, shell: Shell): void {
  program
    .command('backup <file>')
    .description('copy the embedded database into a file')
    .option('--force', 'replace an existing file')
    .addOption(JSON_OUTPUT)
    .addHelpText('after', HELP)
    .action((file: string, options: BackupOptions) => backup(shell, file, options))
}

async function backup(
  shell: Shell,
  file: string,
  { force = false, json = false }: BackupOptions,
): Promise<void> {
  await withAccounts(shell, {}, async (accounts) => {
    const made = await withProgress(shell, file, json, () =>
      accounts.run('backup', { file: resolve(file), force }),
    )
    if (json) printJson(shell, made)
    else shell.out.write(`Copied the database into ${made.file} (${made.bytes} bytes).\n`)
    const secret = made.secret_file ?? 'GATEWAY_SECRET'
    shell.err.write(
      `The secret is not in the copy: without the same ${secret} the copy cannot be used. Keep the secret too, in another place.\n`,
    )
  })
}

async function withProgress<Result>(
  shell: Shell,
  file: string,
  isSilent: boolean,
  work: () => Promise<Result>,
): Promise<Result> {
  const { readEnvironment } = await import('../config/environment.ts')
  const { sqlitePath } = await import('../domain/database-url.ts')
  const { watchCopy } = await import('./copy-progress.ts')
  // The operation itself refuses a database that is not a file.
  const database = sqlitePath(readEnvironment(shell.env).databaseUrl) ?? ''
  using _ = watchCopy(new Progress(shell, 'MiB', isSilent), database, resolve(file))
  return await work()
}
