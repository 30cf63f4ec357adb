import { Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { type ManagedModel, setPrice } from '../../api/models.ts'
import { keepFocus } from '../../components/keep-focus.ts'
import { say } from '../../components/notify.tsx'
import { Refusal } from '../../components/refusal.tsx'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { editedPrice, exampleCost, isPrice, typedPrice } from './edited-price.ts'

/** Sets the price of a model, or restores its built-in price. */
export function EditPriceDialog({
  model,
  onClose,
}: {
  readonly model: ManagedModel | undefined
  readonly onClose: () => void
}) {
  const { models, common } = useTexts()
  return (
    <Modal
      opened={model !== undefined}
      onClose={onClose}
      title={models.editPrice}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      {model && <PriceForm model={model} onClose={onClose} />}
    </Modal>
  )
}

function PriceForm({ model, onClose }: { readonly model: ManagedModel; readonly onClose: () => void }) {
  const { models, common } = useTexts()
  const { profile } = useSignedIn()
  const { usd } = useFormats()
  const client = useQueryClient()
  const amount = (text: string): string | null => (isPrice(text) ? null : common.notAnAmount)
  const form = useForm({
    initialValues: typedPrice(model),
    validateInputOnBlur: true,
    validate: {
      input: amount,
      output: amount,
      cached: (text) => (text.trim() === '' ? null : amount(text)),
    },
  })
  const saving = useAction(async (price: object | null) => {
    try {
      await setPrice(model, price)
      say(models.priceSaved(model.model))
      onClose()
    } finally {
      await Promise.all(
        ['managed-models', 'models'].map((name) =>
          client.invalidateQueries({ queryKey: [profile.id, name] }),
        ),
      )
    }
  })
  const example = exampleCost(form.values)
  return (
    <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(editedPrice(model, typed)))}>
      <Stack gap="md">
        <p>{model.model}</p>
        {(['input', 'output', 'cached'] as const).map((name) => (
          <TextInput
            key={name}
            label={models.prices[name]}
            inputMode="decimal"
            autoComplete="off"
            rightSection={models.usd}
            rightSectionWidth={60}
            {...(name === 'input' && { 'data-autofocus': true })}
            {...(name === 'cached' && { description: models.cachedHint })}
            {...form.getInputProps(name)}
          />
        ))}
        <p role="status">{example === undefined ? models.perMillionOnly : models.example(usd(example))}</p>
        {model.tiers.length > 0 && <p>{models.tiersStay(model.tiers.length)}</p>}
        <Refusal error={saving.error} />
      </Stack>
      <Group justify="flex-end" mt="lg" gap="sm">
        {model.source === 'set' && (
          <Button variant="default" onClick={() => void saving.run(null)} disabled={saving.isRunning}>
            {models.useBuiltIn}
          </Button>
        )}
        <Button type="submit" onMouseDown={keepFocus} loading={saving.isRunning}>
          {models.savePrice}
        </Button>
      </Group>
    </form>
  )
}
