import { ActionIcon, Button, Select } from '@mantine/core'
import { IconAdjustmentsHorizontal, IconPlus, IconX } from '@tabler/icons-react'
import { useState } from 'react'
import type { PricedModel } from '../../api/models.ts'
import { usePriceText } from '../../components/use-price-text.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './playground-page.module.css'

/** The maximum number of models that are compared. */
export const MAX_MODELS = 4

/** The chosen models, which get the same questions, and the button of the settings. */
export function ModelChoices({
  models,
  chosen,
  onChoose,
  isOpen,
  onOpen,
}: {
  readonly models: readonly PricedModel[]
  readonly chosen: readonly string[]
  readonly onChoose: (names: readonly string[]) => void
  /** Whether the settings are open. */
  readonly isOpen: boolean
  readonly onOpen: (isOpen: boolean) => void
}) {
  const { playground } = useTexts()
  /** The position of the field that was added last. Its list of models is open from the start. */
  const [added, setAdded] = useState<number>()
  const free = models.find(({ name }) => !chosen.includes(name))
  return (
    <div className={classes['choices']}>
      <div className={classes['models']}>
        {chosen.length === 0 && (
          <ModelChoice place={0} models={models} model={undefined} onChoose={() => {}} />
        )}
        {chosen.map((name, place) => (
          <div key={place} className={classes['model']}>
            <ModelChoice
              place={place}
              // A model that another field has chosen is not offered again.
              models={models.filter((one) => one.name === name || !chosen.includes(one.name))}
              model={name}
              isAdded={place === added}
              onChoose={(other) => onChoose(chosen.with(place, other))}
            />
            {place > 0 && (
              <ActionIcon
                aria-label={playground.removeModel}
                title={name}
                onClick={() => onChoose(chosen.toSpliced(place, 1))}
              >
                <IconX size={14} aria-hidden />
              </ActionIcon>
            )}
          </div>
        ))}
      </div>
      {chosen.length < MAX_MODELS && free && (
        <Button
          variant="default"
          leftSection={<IconPlus size={16} aria-hidden />}
          onClick={() => {
            setAdded(chosen.length)
            onChoose([...chosen, free.name])
          }}
        >
          {playground.addModel}
        </Button>
      )}
      <Button
        variant="default"
        leftSection={<IconAdjustmentsHorizontal size={16} aria-hidden />}
        aria-expanded={isOpen}
        onClick={() => onOpen(!isOpen)}
      >
        {playground.settings}
      </Button>
    </div>
  )
}

function ModelChoice({
  place,
  models,
  model,
  isAdded = false,
  onChoose,
}: {
  readonly place: number
  readonly models: readonly PricedModel[]
  readonly model: string | undefined
  readonly isAdded?: boolean
  readonly onChoose: (name: string) => void
}) {
  const { playground } = useTexts()
  const priceText = usePriceText()
  const priceOf = (name: string): string => {
    const found = models.find((one) => one.name === name)
    if (found === undefined) return ''
    const { input, units } = found
    const [inputText, outputText] = [priceText.tokens(found, input), priceText.output(found, found.output)]
    const tokens =
      outputText === '–' ? playground.priceIn(inputText) : playground.price(inputText, outputText)
    return [
      ...(inputText === '–' ? [] : [tokens]),
      ...(units.length > 0 ? [priceText.input({ input: undefined, units })] : []),
    ].join(' + ')
  }
  return (
    <Select
      aria-label={place === 0 ? playground.model : playground.modelOf(place + 1)}
      description={model === undefined ? playground.noModelOfKey : priceOf(model)}
      inputWrapperOrder={['input', 'description']}
      allowDeselect={false}
      searchable
      autoFocus={isAdded}
      defaultDropdownOpened={isAdded}
      data={models.map(({ name }) => name)}
      value={model ?? null}
      onChange={(name) => name !== null && onChoose(name)}
      renderOption={({ option: { value } }) => (
        <span className={classes['option']}>
          <span>{value}</span>
          <small>{priceOf(value)}</small>
        </span>
      )}
    />
  )
}
