import { useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import type { AddableAmount } from './add-amount-dialog.tsx'
import { useFormatters } from './session.tsx'

/** A dialog that raises a budget. `open` takes a function that saves the new budget. */
export function useRaiseBudgetDialog() {
  const { limits } = useTexts()
  const { money } = useFormatters()
  const [addition, setAddition] = useState<AddableAmount>()
  const open = (name: string, budget: number, setBudget: (budget: number) => Promise<unknown>): void =>
    setAddition({
      title: limits.raise,
      name,
      hint: limits.amountHint,
      present: budget,
      add: async (amount) => {
        await setBudget(budget + amount)
        return limits.raised(name, money(budget + amount))
      },
    })
  return { open, dialog: { addition, onClose: () => setAddition(undefined) } }
}
