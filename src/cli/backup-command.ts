import { resolve } from 'node:path'
import type { Command } from 'commander'
import { JSON_OUTPUT } from './options.ts'
import type { Shell } from './shell.ts'
import { printJson, withAccounts } from './with-accounts.ts'

const HELP = `
The copy holds the accounts as they are at one moment; the gateway may run meanwhile. It does not hold the secret that the
keys in it are encrypted with: keep that too, apart from the copy. docs/operations.md describes how to restore it.
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
    .option('--force', 'replace the file if it is there')
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
    const made = await accounts.run('backup', { file: resolve(file), force })
    if (json) printJson(shell, made)
    else shell.out.write(`Copied the database into ${made.file} (${made.bytes} bytes).\n`)
    const secret = made.secret_file ?? 'GATEWAY_SECRET'
    shell.err.write(
      `The secret is not in it: without the same ${secret} the copy cannot be used. Keep it too, somewhere else.\n`,
    )
  })
}
