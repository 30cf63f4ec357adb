import type { Command } from 'commander'
import type { Shell } from './shell.ts'
import { withAccounts } from './with-accounts.ts'

const HELP = `
A gateway does this at its start as well. As a separate step, before the first node of a new version starts, it fails without a node
having changed: exit code 1, and the database stays as it was.`

/** `sluice schema`. */
export function addSchemaCommand(program: Command, shell: Shell): void {
  program
    .command('schema')
    .description('bring the schema of the database up to date')
    .addHelpText('after', HELP)
    .action(async () => {
      const { STEPS } = await import('../store/migrations/steps.ts')
      await withAccounts(shell, {}, async (accounts) => {
        // The database is opened by the first use of it, which runs the missing steps.
        await accounts.display()
        shell.out.write(`The schema is up to date (${STEPS.at(-1)?.name}).\n`)
      })
    })
}
