import { type Command, Option } from 'commander'
import { quotaText } from '../management/quota-text.ts'
import { type Amount, AMOUNT_FORM, parseAmount, quotaOfAmounts } from './amount.ts'
import type { CommandContext } from './command-context.ts'
import {
  BUDGET_OPTIONS,
  type BudgetOptions,
  budgetFromOptions,
  CONFIG_OPTION,
  JSON_OPTION,
} from './options.ts'
import { plainText } from './plain-text.ts'
import { table } from './table.ts'
import { timeText } from './time-text.ts'
import { type AccountOptions, printJson, printResult, runWithAccounts } from './with-accounts.ts'

const INVITE_HELP = `
The link is printed once, alone on standard output. Whoever opens it first chooses a name and a password, and becomes a user
with the role 1. "sluice user invitations" lists open ones, and "sluice user withdraw ID" ends one.
Example:
  sluice user invite --group sales --quota 100usd --budget 10usd --per month`

/** Adds the commands of `sluice user` for invitations. */
export function addInvitationCommands(user: Command, shell: CommandContext): void {
  user
    .command('invite')
    .description('print a link with which a person creates an account, once and within 72 hours')
    .option('--group <name>', 'the group of the user')
    .addOption(new Option('--quota <amount>', `the quota of the user: ${AMOUNT_FORM}`).argParser(parseAmount))
    .addOption(BUDGET_OPTIONS[0])
    .addOption(BUDGET_OPTIONS[1])
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .addHelpText('after', INVITE_HELP)
    .action((options: InviteOptions, command: Command) =>
      invite(shell, options, budgetFromOptions(options, command)),
    )

  user
    .command('invitations')
    .description('invitations that are open')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .action((options: AccountOptions) =>
      printResult(shell, options, 'listInvitations', {}, (open, display) =>
        table(
          open,
          [
            { title: 'ID', cell: ({ id }) => String(id), right: true },
            { title: 'GROUP', cell: ({ group }) => group },
            { title: 'QUOTA', cell: ({ quota }) => quotaText(quota, display), right: true },
            {
              title: 'BUDGET',
              cell: ({ budget, budget_period: period }) =>
                budget > 0 ? `${quotaText(budget, display)} per ${period}` : 'none',
            },
            { title: 'BY', cell: ({ inviter }) => inviter || '-' },
            { title: 'EXPIRES', cell: ({ expires_at }) => timeText(expires_at) },
          ],
          shell.out,
        ),
      ),
    )

  user
    .command('withdraw <id>')
    .description('withdraw an invitation')
    .addOption(JSON_OPTION)
    .addOption(CONFIG_OPTION)
    .action((id: string, options: AccountOptions) =>
      printResult(
        shell,
        options,
        'withdrawInvitation',
        { id: Number(id) },
        () => `The invitation ${plainText(id)} is withdrawn.\n`,
      ),
    )
}

interface InviteOptions extends AccountOptions, BudgetOptions {
  readonly group?: string
  readonly quota?: Amount
}

async function invite(
  shell: CommandContext,
  options: InviteOptions,
  { budget, ...period }: ReturnType<typeof budgetFromOptions>,
): Promise<void> {
  await runWithAccounts(shell, options, async (accounts) => {
    const given = quotaOfAmounts(shell, await accounts.display(), { quota: options.quota, budget })
    const made = await accounts.run('inviteUser', {
      ...(options.group !== undefined && { group: options.group }),
      ...given,
      ...period,
    })
    if (options.json) printJson(shell, made)
    else {
      const until = timeText(made.expires_at)
      if ((given.quota ?? 0) === 0) warnOfNoQuota(shell, 'NAME')
      shell.err.write(`The invitation ${made.id}, valid once and until ${until}, printed once:\n`)
      shell.out.write(`${made.link}\n`)
    }
  })
}

/** Warns of a user without a quota. A budget limits what may be spent, but it gives nothing to spend. */
export function warnOfNoQuota(shell: CommandContext, name: string): void {
  shell.err.write(
    `Warning: calls are refused until there is a quota, for example by sluice user top-up ${name} 10usd, or sluice user update ${name} --unlimited-quota.\n`,
  )
}
