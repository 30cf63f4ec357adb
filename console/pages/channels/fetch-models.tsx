import { Button, Checkbox, Group, Modal, TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import { fetchUpstreamModelNames } from '../../api/channels.ts'
import { focusInvalid } from '../../components/focus-invalid.ts'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { type ChannelForm, channelFieldsOf, showErrorAtField } from './channel-form.ts'
import classes from './fetch-models.module.css'

/** A placeholder for the name of a new channel, because the gateway requires a name to list the models. */
const UNNAMED = 'unnamed'
/** Maximum number of models that are shown; the filter finds the others. */
const DRAWN = 500

/** Lists the models of the upstream; the user chooses which of them the channel offers. */
export function FetchModels({
  form,
  id,
  onFetched,
}: {
  readonly form: ChannelForm
  readonly id: number | undefined
  readonly onFetched: (names: readonly string[]) => void
}) {
  const { channels } = useTexts()
  const [listed, setListed] = useState<readonly string[]>()
  const [isOpen, setIsOpen] = useState(false)
  const fetching = useAction(async () => {
    try {
      const typed = form.getValues()
      const names = await fetchUpstreamModelNames(
        channelFieldsOf({ ...typed, name: typed.name.trim() || UNNAMED }),
        id,
      )
      onFetched(names)
      setListed(names)
      setIsOpen(true)
    } catch (error) {
      if (showErrorAtField(error, form) === undefined) throw error
      focusInvalid(document.querySelector('main form'))
    }
  })
  return (
    <>
      <Group gap="sm">
        <Button variant="default" loading={fetching.isRunning} onClick={() => void fetching.run()}>
          {channels.fetchModels}
        </Button>
        <span role="status">{listed && !fetching.isRunning && channels.fetched(listed.length)}</span>
      </Group>
      <RefusalMessage error={fetching.error} />
      {listed && (
        <ModelsDialog
          opened={isOpen}
          listed={listed}
          present={form.values.models}
          onTake={(models) => form.setFieldValue('models', [...models])}
          onClose={() => setIsOpen(false)}
        />
      )}
    </>
  )
}

interface DialogProps {
  readonly opened: boolean
  readonly listed: readonly string[]
  /** The models that the channel already has. */
  readonly present: readonly string[]
  readonly onTake: (models: readonly string[]) => void
  readonly onClose: () => void
}

function ModelsDialog(props: DialogProps) {
  const { channels, common } = useTexts()
  const { opened, onClose } = props
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={channels.fetchModels}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <ModelChoice {...props} />
    </Modal>
  )
}

/** The dialog to choose models. Models of the channel that the upstream does not list are kept. */
function ModelChoice({ listed, present, onTake, onClose }: DialogProps) {
  const { channels, common } = useTexts()
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set(present.filter((name) => listed.includes(name))),
  )
  const had = new Set(present)
  const part = text.trim().toLowerCase()
  const found = listed.filter((name) => name.toLowerCase().includes(part))
  const choose = (names: readonly string[], isChosen: boolean): void => {
    const next = new Set(chosen)
    for (const name of names) {
      if (isChosen) next.add(name)
      else next.delete(name)
    }
    setChosen(next)
  }
  return (
    <>
      <TextInput
        type="search"
        aria-label={channels.filterModels}
        placeholder={channels.filterModels}
        leftSection={<IconSearch size={16} aria-hidden />}
        data-autofocus
        value={text}
        onChange={({ currentTarget: { value } }) => setText(value)}
      />
      <Group gap="sm" my="sm">
        <Button variant="default" size="xs" onClick={() => choose(found, true)}>
          {channels.takeAll}
        </Button>
        <Button variant="default" size="xs" onClick={() => choose(found, false)}>
          {channels.takeNone}
        </Button>
        <span role="status">{channels.chosen(chosen.size, listed.length)}</span>
      </Group>
      <ul className={classes['models']}>
        {found.slice(0, DRAWN).map((name) => (
          <li key={name}>
            <Checkbox
              label={name}
              description={had.has(name) ? channels.alreadyThere : undefined}
              checked={chosen.has(name)}
              onChange={({ currentTarget: { checked } }) => choose([name], checked)}
            />
          </li>
        ))}
        {found.length === 0 && <li>{common.nothingFound}</li>}
        {found.length > DRAWN && <li>{channels.moreModels(found.length - DRAWN)}</li>}
      </ul>
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" onClick={onClose}>
          {common.cancel}
        </Button>
        <Button
          onClick={() => {
            const known = new Set(listed)
            onTake([
              ...present.filter((name) => !known.has(name) || chosen.has(name)),
              ...listed.filter((name) => chosen.has(name) && !had.has(name)),
            ])
            onClose()
          }}
        >
          {channels.takeChosen}
        </Button>
      </Group>
    </>
  )
}
