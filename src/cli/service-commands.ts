import { type Command, Option } from 'commander'
import type { CommandBackend } from '../gateway/control/command-backend.ts'
import type { CommandContext } from './command-context.ts'
import { runWithAccounts } from './with-accounts.ts'
import { CONFIG_OPTION } from './options.ts'

const START_HELP = `
The first start on an empty database creates a root user and prints its access token and an API key, once.
Example:
  OPENAI_API_KEY=… sluice start   # without a configuration, each vendor key in the environment creates a channel`

/** Adds the commands that run a gateway or check its configuration: `sluice start`, `demo`, `check`. */
export function addServiceCommands(program: Command, shell: CommandContext): void {
  program
    .command('start')
    .description('run the gateway until a signal stops it (SIGTERM, SIGINT)')
    .addOption(CONFIG_OPTION)
    // Accepted only to say what replaces it.
    .addOption(new Option('--workers <number>').hideHelp())
    .addHelpText('after', START_HELP)
    .action(async (options: { config?: string; workers?: string }) => {
      const { start } = await import('./start.ts')
      shell.exitCode = await start(options)
    })

  program
    .command('demo')
    .description('run the gateway with a simulated upstream of each protocol: no vendor key is needed')
    .action(async () => {
      const { demo } = await import('./demo.ts')
      const { endAfterFailure } = await import('./start.ts')
      shell.exitCode = endAfterFailure(await demo())
    })

  program
    .command('check')
    .description('read the configuration and print all errors, with file, line and the expected value')
    .addOption(CONFIG_OPTION)
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExits with 1 if there is any error.')
    .action(async (options: { config?: string; json?: boolean }) => {
      const { check } = await import('./check.ts')
      shell.exitCode = await check(options, shell)
    })
}

const SCHEMA_HELP = `
A gateway does this at its start as well. As a separate step, before the first node of a new version starts, it fails without a node
having changed: exit code 1, and the database stays as it was.`

/** Adds `sluice schema`, which migrates the database before the first node of a new version starts. */
export function addSchemaCommand(program: Command, shell: CommandContext): void {
  program
    .command('schema')
    .description('bring the schema of the database up to date')
    .addHelpText('after', SCHEMA_HELP)
    .action(async () => {
      const { STEPS } = await import('../store/migrations/steps.ts')
      // Any use of the database opens it, and opening runs the missing migration steps.
      const migrate = async (accounts: CommandBackend): Promise<void> => {
        await accounts.display()
        shell.out.write(`The schema is up to date (${STEPS.at(-1)?.name}).\n`)
      }
      await runWithAccounts(shell, {}, migrate, { createsDatabase: true })
    })
}
