import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { JSON_OPTION } from './options.ts'
import { Progress } from './progress.ts'
import type { CommandContext } from './command-context.ts'
import { printJson, runWithAccounts } from './with-accounts.ts'

const HELP = `
The copy is a consistent snapshot of the accounts; the gateway may run meanwhile. The copy does not contain the secret that its
keys are encrypted with: keep the secret too, in another place. docs/operations.md describes how to restore the copy.
Example:
  sluice backup /backups/sluice-$(date +%F).db`

interface BackupOptions {
  readonly force?: boolean
  readonly json?: boolean
}

/** Adds `sluice backup`, which copies the database to a file while the gateway runs. */
export function addBackupCommand(program: Command, shell: CommandContext): void {
  program
    .command('backup <file>')
    .description('copy the embedded database into a file')
    .option('--force', 'replace an existing file')
    .addOption(JSON_OPTION)
    .addHelpText('after', HELP)
    .action((file: string, options: BackupOptions) => backup(shell, file, options))
}

async function backup(
  shell: CommandContext,
  file: string,
  { force = false, json = false }: BackupOptions,
): Promise<void> {
  await runWithAccounts(shell, {}, async (accounts) => {
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
  shell: CommandContext,
  file: string,
  isSilent: boolean,
  work: () => Promise<Result>,
): Promise<Result> {
  const { readEnvironment } = await import('../config/environment.ts')
  const { sqlitePath } = await import('../domain/database-url.ts')
  // The backup operation refuses a database that is not a file.
  const database = sqlitePath(readEnvironment(shell.env).databaseUrl) ?? ''
  using _ = showCopyProgress(new Progress(shell, 'MiB', isSilent), database, resolve(file))
  return await work()
}

/** Interval in milliseconds at which the size of the copy is measured. */
const INTERVAL_MS = 250
const MEBIBYTE = 2 ** 20

/**
 * Shows how much of the database has been copied, in MiB. Measures the file, because another process may be
 * making the copy.
 */
export function showCopyProgress(progress: Progress, database: string, copy: string): Disposable {
  const total = sizeOf(database)
  const timer = setInterval(() => {
    const copied = Math.min(total, unfinishedCopyBytes(copy))
    progress.show(Math.floor(copied / MEBIBYTE), Math.floor(total / MEBIBYTE))
  }, INTERVAL_MS).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      progress.end()
    },
  }
}

/**
 * Size of the unfinished copy in bytes, which has a different name than the finished one; 0 if there is none.
 */
export function unfinishedCopyBytes(copy: string): number {
  const start = `${basename(copy)}.`
  try {
    const names = readdirSync(dirname(copy))
    const found = names.find((name) => name.startsWith(start) && name.endsWith('.unfinished'))
    return found === undefined ? 0 : sizeOf(join(dirname(copy), found))
  } catch {
    return 0
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
