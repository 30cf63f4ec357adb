import type { BankClient } from '../ledger/bank-client.ts'
import type { LeasedAccounts } from '../ledger/leased-accounts.ts'
import type { AccountName } from '../store/bank.ts'

/**
 * Handles an announcement of another node. `account u:3 7`: that account was changed, and its epoch is 7.
 * `recall t:5 NODE`: that node needs what others do not use of that account.
 */
export function handleAnnouncement(
  text: string,
  to: { readonly accounts: LeasedAccounts; readonly bankClient: BankClient; readonly node: string },
): void {
  const [, kind, account, rest] = /^(account|recall) ([ut]:\d+|b:.+) (\S+)$/s.exec(text) ?? []
  if (kind === 'account') to.accounts.onChanged(account as AccountName, Number(rest))
  if (kind === 'recall' && rest !== to.node) {
    to.bankClient.leases.requestRecall(account as AccountName)
    to.bankClient.wake()
  }
}
