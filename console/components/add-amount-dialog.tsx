import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import { moneyUnit, parseMoney } from './money.ts'
import { showNotice } from './notify.tsx'
import { RefusalMessage } from './refusal-message.tsx'
import { useFormatters, useSignedInAccount } from './session.tsx'
import { FormDialog } from './form-dialog.tsx'
import { FormActions } from './form-actions.tsx'
import { useAction } from './use-action.ts'

/** An amount of money that can be increased. */
export interface AddableAmount {
  /** The title of the dialog and of its button. */
  readonly title: string
  /** The name of the user, key or group that has the amount. */
  readonly name: string
  /** An explanation, if the title does not say what the amount is added to. */
  readonly hint?: string
  /** The present amount in quota units. */
  readonly present: number
  /** Adds an amount and reloads the data that shows it. Resolves to the message for the user. */
  readonly add: (amount: number) => Promise<string>
}

/** A dialog that increases an amount of money; it shows the amount before and after. */
export function AddAmountDialog({
  addition,
  onClose,
}: {
  readonly addition: AddableAmount | undefined
  readonly onClose: () => void
}) {
  return (
    <FormDialog opened={addition !== undefined} onClose={onClose} title={addition?.title}>
      {addition && <AmountForm addition={addition} onClose={onClose} />}
    </FormDialog>
  )
}

function AmountForm({
  addition: { title, name, hint, present, add },
  onClose,
}: {
  readonly addition: AddableAmount
  readonly onClose: () => void
}) {
  const { common } = useTexts()
  const { display } = useSignedInAccount()
  const { money } = useFormatters()
  const [text, setText] = useState('')
  const [isChecked, setIsChecked] = useState(false)
  const amount = parseMoney(text, display)
  const isValid = amount !== undefined && amount > 0
  const change = common.beforeAfter(money(present), money(present + (amount ?? 0)))
  const adding = useAction(async () => {
    setIsChecked(true)
    if (!isValid) return
    showNotice(await add(amount))
    onClose()
  })
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        void adding.run()
      }}
    >
      <p>{name}</p>
      <TextInput
        label={common.amount}
        inputMode="decimal"
        data-autofocus
        rightSection={display.kind === 'TOKENS' ? common.units : moneyUnit(display)}
        rightSectionWidth={60}
        value={text}
        onChange={({ currentTarget: { value } }) => setText(value)}
        onBlur={() => setIsChecked(text !== '')}
        error={isChecked && !isValid ? common.notAnAmount : undefined}
        description={hint === undefined ? change : `${hint} ${change}`}
      />
      <RefusalMessage error={adding.error} />
      <FormActions label={title} isRunning={adding.isRunning} onCancel={onClose} />
    </form>
  )
}
