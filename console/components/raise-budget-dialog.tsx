import { Button, Group, Modal, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { keepFocus } from './keep-focus.ts'
import { moneyUnit, parseMoney } from './money.ts'
import { say } from './notify.tsx'
import { Refusal } from './refusal.tsx'
import { useFormats, useSignedIn } from './session.tsx'
import { useAction } from './use-action.ts'

/** A budget that can be raised. */
export interface RaisedBudget {
  readonly name: string
  /** The present amount in quota units. */
  readonly budget: number
  /** Sets the new amount, and loads again what shows it. */
  readonly raise: (budget: number) => Promise<unknown>
}

/** Adds to a budget; shows the amounts before and after. */
export function RaiseBudgetDialog({
  raised,
  onClose,
}: {
  readonly raised: RaisedBudget | undefined
  readonly onClose: () => void
}) {
  const { limits, common } = useTexts()
  return (
    <Modal
      opened={raised !== undefined}
      onClose={onClose}
      title={limits.raise}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      {raised && <AmountForm raised={raised} onClose={onClose} />}
    </Modal>
  )
}

function AmountForm({ raised, onClose }: { readonly raised: RaisedBudget; readonly onClose: () => void }) {
  const { limits, common } = useTexts()
  const { display } = useSignedIn()
  const { money } = useFormats()
  const [text, setText] = useState('')
  const [isChecked, setIsChecked] = useState(false)
  const amount = parseMoney(text, display)
  const isValid = amount !== undefined && amount > 0
  const after = raised.budget + (amount ?? 0)
  const raising = useAction(async () => {
    setIsChecked(true)
    if (!isValid) return
    await raised.raise(after)
    say(limits.raised(raised.name, money(after)))
    onClose()
  })
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void raising.run()
      }}
    >
      <p>{raised.name}</p>
      <TextInput
        label={limits.amount}
        inputMode="decimal"
        data-autofocus
        rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
        rightSectionWidth={60}
        value={text}
        onChange={({ currentTarget: { value } }) => setText(value)}
        onBlur={() => setIsChecked(text !== '')}
        error={isChecked && !isValid ? common.notAnAmount : undefined}
        description={`${limits.amountHint} ${limits.beforeAfter(money(raised.budget), money(after))}`}
      />
      <Refusal error={raising.error} />
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" onClick={onClose}>
          {common.cancel}
        </Button>
        <Button type="submit" onMouseDown={keepFocus} loading={raising.isRunning}>
          {limits.raise}
        </Button>
      </Group>
    </form>
  )
}
