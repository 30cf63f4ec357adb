import type { Command } from 'commander'
import type { GroupObject } from '../management/groups/list-groups.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { CommandContext } from './command-context.ts'
import { CONFIG_OPTION, JSON_OPTION } from './options.ts'
import { budgetText, isBudgetUsedUp } from './quota-text.ts'
import { type Column, details, table } from './table.ts'
import { type AccountOptions, printResult } from './with-accounts.ts'

const HELP = `
A user belongs to one group, which decides on prices (ratio), channels, guards and a budget that all its members share.
Example:
  sluice group show sales`

/** Adds the commands `sluice group …`. */
export function addGroupCommands(program: Command, shell: CommandContext): void {
  const group = program.command('group').description('show groups of users')
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
