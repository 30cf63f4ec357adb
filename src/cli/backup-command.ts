import { resolve } from 'node:path'
import process from 'node:process'
import type { Command } from 'commander'
import { JSON_OUTPUT } from './options.ts'
import { printJson, withAccounts } from './with-accounts.ts'

const HELP = `
The copy holds the accounts as they are at one moment; the gateway may run meanwhile. It does not hold the secret that the
keys in it are encrypted with: keep that too, apart from the copy. How to restore it is told in docs/operations.md.
Example:
  sluice backup /backups/sluice-$(date +%F).db`

/** `sluice backup`. */
export function addBackupCommand(program: Command): void {
  program
    .command('backup <file>')
    .description('copy the embedded database into a file')
    .option('--force', 'replace the file if it is there')
    .addOption(JSON_OUTPUT)
    .addHelpText('after', HELP)
    .action(backup)
}

async function backup(
  file: string,
  { force = false, json = false }: { force?: boolean; json?: boolean },
): Promise<void> {
  await withAccounts({}, async (accounts) => {
    const made = await accounts.run('backup', { file: resolve(file), force })
    if (json) printJson(made)
    else process.stdout.write(`Copied the database into ${made.file} (${made.bytes} bytes).\n`)
    const secret = made.secret_file ?? 'GATEWAY_SECRET'
    process.stderr.write(
      `The secret is not in it: without the same ${secret} the copy cannot be used. Keep it too, somewhere else.\n`,
    )
  })
}
