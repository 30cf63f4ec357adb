import type { Command } from 'commander'
import type { ChannelObject } from '../management/channels/channel-object.ts'
import { CONFIG_OPTION, JSON_OPTION } from './options.ts'
import { plainText } from './plain-text.ts'
import type { CommandContext } from './command-context.ts'
import { type Column, table } from './table.ts'
import { type AccountOptions, printJson, printResult, runWithAccounts } from './with-accounts.ts'

const LIST_HELP = `
Channels that were set over HTTP come first, then those of gateway.yaml, or of keys in the environment. Keys are not shown.
HEALTH is what the running gateway sees: works, degraded, failing, resting or probing, and why. Without one it is unknown.
Example:
  sluice channel list`

const TEST_HELP = `
Sends a minimal request (one token, or one document) to the endpoint of a model, with the channel's first key, even if
the channel is disabled. The test of a channel that has only images or speech makes one, which the provider bills; no
key is charged. Exits with 1 if the test fails.
Examples:
  sluice channel test openai
  sluice channel test openai --model gpt-5.4-mini`

const SWITCH_HELP = `
Only channels that were set over HTTP can be switched; those of gateway.yaml are changed there. "sluice channel list" shows
which is which. Other nodes on the same database follow within a minute.`

interface TestOptions extends AccountOptions {
  readonly model?: string
}

/** A channel, and how it does; null if no gateway runs that could know it. */
type ListedChannel = ChannelObject & {
  readonly health: { readonly state: string; readonly cause: string | null } | null
}

/** Adds the commands `sluice channel …`. */
export function addChannelCommands(program: Command, shell: CommandContext): void {
  const channel = program.command('channel').description('list, test and switch channels')
  channel
    .command('list')
    .description('all channels, with health, protocol, models, groups and where they are managed')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', LIST_HELP)
    .action((options: AccountOptions) => list(shell, options))
  channel
    .command('test <name>')
    .description('test a channel with the least request of its endpoint')
    .option(
      '--model <model>',
      "the model; by default the channel's first that costs no picture and no speech",
    )
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', TEST_HELP)
    .action((name: string, options: TestOptions) => test(shell, name, options))
  channel
    .command('enable <name>')
    .description('use a disabled channel again')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', SWITCH_HELP)
    .action((name: string, options: AccountOptions) => enable(shell, name, options))
  channel
    .command('disable <name>')
    .description('use a channel for no further call; running ones go on')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', SWITCH_HELP)
    .action((name: string, options: AccountOptions) => disable(shell, name, options))
}

async function list(shell: CommandContext, options: AccountOptions): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const channels = await accounts.run('listAllChannels', {})
    // A running gateway of another version may not know this operation.
    const known = await accounts.run('listChannelStates', {}).catch(() => [])
    const states = new Map(known.map(({ name, state, cause }) => [name, { state, cause }]))
    const listed = channels.map((one) => ({ ...one, health: states.get(one.name) ?? null }))
    if (options.json) printJson(shell, listed)
    else if (listed.length === 0) shell.err.write('There is no channel.\n')
    else shell.out.write(table(listed, COLUMNS, shell.out))
  })
}

async function test(
  shell: CommandContext,
  channel: string,
  { model, ...options }: TestOptions,
): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const result = await accounts.run('testNamedChannel', { channel, ...(model !== undefined && { model }) })
    const { success, message, time, costs, endpoint, needs_repair } = result
    if (options.json) printJson(shell, result)
    else {
      if (success) shell.out.write(`The channel "${channel}" has answered in ${time} s.\n`)
      if (needs_repair)
        shell.out.write(
          'Its answer has faults of form that clients may stumble over: `repair: true` mends them.\n',
        )
      if (costs) shell.out.write(`The provider bills this test, a request of ${endpoint}.\n`)
    }
    if (success) return
    if (!options.json)
      shell.err.write(plainText(`sluice: the channel "${channel}" failed after ${time} s: ${message}\n`))
    shell.exitCode = 1
  })
}

function onChannel(operation: 'enableChannel' | 'disableChannel', effect: string) {
  return (shell: CommandContext, channel: string, options: AccountOptions): Promise<void> =>
    printResult(shell, options, operation, { channel }, ({ name }) =>
      plainText(`The channel "${name}" ${effect}.\n`),
    )
}

const enable = onChannel('enableChannel', 'is used again')
const disable = onChannel('disableChannel', 'is used for no further call')

const COLUMNS: readonly Column<ListedChannel>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'PROTOCOL', cell: ({ protocol }) => protocol.join(', ') },
  {
    title: 'STATUS',
    cell: ({ status }) => (status === 1 ? 'enabled' : 'disabled'),
    warns: ({ status }) => status !== 1,
  },
  {
    title: 'HEALTH',
    cell: ({ health }) => (health ? [health.state, health.cause ?? ''].join(' ').trim() : 'unknown'),
    warns: ({ health }) => health?.cause != null,
  },
  { title: 'PRIORITY', cell: ({ priority }) => String(priority), right: true },
  { title: 'WEIGHT', cell: ({ weight }) => String(weight), right: true },
  { title: 'GROUPS', cell: ({ group }) => group },
  { title: 'MODELS', cell: ({ models }) => shortened(models.split(',')) },
  { title: 'MANAGED BY', cell: ({ managed_by }) => managed_by || 'HTTP' },
]

function shortened(models: readonly string[]): string {
  const more = models.length > 3 ? ` and ${models.length - 3} more` : ''
  return `${models.slice(0, 3).join(', ')}${more}`
}
