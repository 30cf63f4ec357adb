import { type Command, Option } from 'commander'
import type { GroupObject } from '../management/groups/list-groups.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { CommandContext } from './command-context.ts'
import { BUDGET_OPTIONS, type BudgetOptions, commaList, CONFIG_OPTION, JSON_OPTION } from './options.ts'
import { quotaOfAmounts } from './amount.ts'
import { plainText } from './plain-text.ts'
import { budgetText, isBudgetUsedUp } from '../management/quota-text.ts'
import { type Column, details, table } from './table.ts'
import { type AccountOptions, printResult } from './with-accounts.ts'

const HELP = `
A user belongs to one group, which decides on prices (ratio), channels, guards and a budget that all its members share.
Example:
  sluice group show sales`

const CHANGE_HELP = `
A group of gateway.yaml is changed there. A change counts from the next call on; a new budget keeps the period, --budget 0
removes both, and --guards '' removes the guards.
Examples:
  sluice group create sales --ratio 0.8 --budget 100usd --per month
  sluice group update sales --guards secrets`

interface ChangeOptions extends AccountOptions, BudgetOptions {
  readonly ratio?: string
  readonly open?: boolean
  readonly closed?: boolean
  readonly guards?: readonly string[]
}

/** Adds the commands `sluice group …`. */
export function addGroupCommands(program: Command, shell: CommandContext): void {
  const group = program.command('group').description('manage groups of users')
  group
    .command('list')
    .description('all groups, with ratio, members, budget, models and guards')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', HELP)
    .action((options: AccountOptions) =>
      printResult(shell, options, 'listGroups', {}, (groups, display) =>
        table(groups, columns(display), shell.out),
      ),
    )
  const changing = (name: string, description: string, operation: 'createGroup' | 'changeGroup'): void => {
    group
      .command(`${name} <name>`)
      .description(description)
      .option('--ratio <number>', 'the factor of all prices')
      .addOption(new Option('--open', 'keys of any user may name it').conflicts('closed'))
      .option('--closed', 'keys of its members alone may name it')
      .option('--guards <names>', 'guards that check its calls, separated by commas', commaList)
      .addOption(BUDGET_OPTIONS[0])
      .addOption(BUDGET_OPTIONS[1])
      .addOption(JSON_OPTION)
      .addOption(CONFIG_OPTION)
      .addHelpText('after', CHANGE_HELP)
      .action((named: string, options: ChangeOptions) => change(shell, operation, named, options))
  }
  changing('create', 'make a group, closed unless --open is given', 'createGroup')
  changing('update', "change a group's ratio, guards, budget, and who may name it", 'changeGroup')
  group
    .command('add <group> <user>')
    .description('move a user to a group')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .action((named: string, user: string, options: AccountOptions) =>
      printResult(shell, options, 'moveToGroup', { group: named, user }, (moved) =>
        plainText(`The user "${moved.username}" belongs to the group "${moved.group}".\n`),
      ),
    )
  group
    .command('delete <name>')
    .description('delete a group without members')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .action((named: string, options: AccountOptions) =>
      printResult(shell, options, 'deleteGroup', { group: named }, () =>
        plainText(`The group "${named}" is deleted.\n`),
      ),
    )
  group
    .command('show <name>')
    .description('one group: its members, models and channels by name')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', HELP)
    .action((name: string, options: AccountOptions) =>
      printResult(shell, options, 'showGroup', { group: name }, (found, display) => {
        const more = found.members - found.member_names.length
        const names = [...found.member_names, ...(more > 0 ? [`and ${more} more`] : [])]
        return details([
          ['name', found.group],
          ['ratio', found.ratio],
          ['keys of', found.open ? 'any user may name it' : 'its members alone may name it'],
          ['budget', budgetText(found, display)],
          ['guards', listed(found.guards)],
          ['channels', listed(found.channels)],
          ['models', listed(found.models)],
          ['members', found.members === 0 ? '0' : `${found.members}: ${names.join(', ')}`],
        ])
      }),
    )
}

function change(
  shell: CommandContext,
  operation: 'createGroup' | 'changeGroup',
  group: string,
  { ratio, open, closed, guards, budget, per, ...options }: ChangeOptions,
): Promise<void> {
  return printResult(
    shell,
    options,
    operation,
    (display) => ({
      group,
      ...(ratio !== undefined && { ratio }),
      ...((open || closed) && { open: open ?? false }),
      ...(guards && { guards: [...guards] }),
      ...quotaOfAmounts(shell, display, { budget }),
      ...(per && { budget_period: per }),
    }),
    (changed, display) => {
      if (changed.channels.length === 0)
        shell.err.write('Warning: no channel serves this group: name it under groups of a channel.\n')
      return table([changed], columns(display), shell.out)
    },
  )
}

function columns(display: QuotaDisplay): readonly Column<GroupObject>[] {
  return [
    { title: 'NAME', cell: ({ group }) => group },
    { title: 'RATIO', cell: ({ ratio }) => ratio, right: true },
    { title: 'OPEN', cell: ({ open }) => (open ? 'yes' : 'no') },
    { title: 'MEMBERS', cell: ({ members }) => String(members), right: true },
    { title: 'BUDGET', cell: (group) => budgetText(group, display), warns: isBudgetUsedUp },
    {
      title: 'MODELS',
      cell: ({ models }) => String(models.length),
      right: true,
      warns: ({ models }) => models.length === 0,
    },
    { title: 'GUARDS', cell: ({ guards }) => listed(guards) },
  ]
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ')
}
