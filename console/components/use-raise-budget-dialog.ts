import { useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { useTexts } from '../locales/use-texts.tsx'
import type { AddableAmount } from './add-amount-dialog.tsx'
import { useFormatters } from './session.tsx'

/** A key or a user. */
interface Budgeted {
  readonly budget: number
  readonly version: string
}

/**
 * A dialog that raises a budget. `open` takes a function that saves the new budget, if the object still has this
 * version.
 */
export function useRaiseBudgetDialog() {
  const { limits } = useTexts()
  const { money } = useFormatters()
  const [addition, setAddition] = useState<AddableAmount>()
  const open = (
    name: string,
    shown: Budgeted,
    setBudget: (budget: number, version: string) => Promise<unknown>,
  ): void => {
    const add = async (amount: number, { budget, version }: Budgeted): Promise<string> => {
      try {
        await setBudget(budget + amount, version)
        return limits.raised(name, money(budget + amount))
      } catch (error) {
        const present = error instanceof ApiError ? (error.present as Budgeted | undefined) : undefined
        if (present === undefined) throw error
        // Somebody has changed another field.
        if (present.budget === budget) return add(amount, present)
        open(name, present, setBudget)
        throw error
      }
    }
    setAddition({
      title: limits.raise,
      name,
      hint: limits.amountHint,
      present: shown.budget,
      add: (amount) => add(amount, shown),
    })
  }
  return { open, dialog: { addition, onClose: () => setAddition(undefined) } }
}
