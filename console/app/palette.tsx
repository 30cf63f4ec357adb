import { Modal, VisuallyHidden } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useEffect, useId, useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './palette.module.css'
import { usePaletteEntries } from './palette-entries.ts'

/** A search for pages and actions by typed text. */
export function Palette({
  opened,
  onClose,
  onHelp,
}: {
  readonly opened: boolean
  readonly onClose: () => void
  readonly onHelp: () => void
}) {
  const { palette, common } = useTexts()
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={<VisuallyHidden>{palette.title}</VisuallyHidden>}
      padding={0}
      yOffset="12vh"
      closeButtonProps={{ 'aria-label': common.close }}
      classNames={{ header: classes['head'], close: classes['close'] }}
    >
      <Search onClose={onClose} onHelp={onHelp} />
    </Modal>
  )
}

function Search({ onClose, onHelp }: { readonly onClose: () => void; readonly onHelp: () => void }) {
  const { palette } = useTexts()
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const id = useId()
  const { entries, isSearching } = usePaletteEntries(text, onHelp)
  const at = Math.min(chosen, entries.length - 1)
  useEffect(() => {
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' })
  }, [id, at])
  const run = (index: number): void => {
    onClose()
    entries[index]?.run()
  }
  const keys: Record<string, () => void> = {
    ArrowDown: () => setChosen((at + 1) % entries.length),
    ArrowUp: () => setChosen((at - 1 + entries.length) % entries.length),
    Enter: () => run(at),
  }
  return (
    <div className={classes['palette']}>
      <div className={classes['field']}>
        <IconSearch size={16} aria-hidden />
        <input
          role="combobox"
          data-autofocus
          aria-label={palette.search}
          aria-expanded={entries.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={entries.length > 0 ? `${id}-${at}` : undefined}
          aria-autocomplete="list"
          placeholder={palette.placeholder}
          value={text}
          onChange={({ currentTarget: { value } }) => {
            setText(value)
            setChosen(0)
          }}
          onKeyDown={(event) => {
            const act = entries.length > 0 ? keys[event.key] : undefined
            if (!act || event.nativeEvent.isComposing) return
            event.preventDefault()
            act()
          }}
        />
      </div>
      {(entries.length === 0 || isSearching) && (
        <p role="status" className={classes['empty']}>
          {isSearching ? palette.searching : palette.empty}
        </p>
      )}
      <div role="listbox" id={`${id}-list`} aria-label={palette.title}>
        {entries.map(({ label, detail, icon: Icon }, index) => (
          <div
            key={`${index} ${label}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            tabIndex={-1}
            className={classes['entry']}
            onMouseMove={() => setChosen(index)}
            onClick={() => run(index)}
            onKeyDown={() => {}}
          >
            <Icon size={16} stroke={1.6} aria-hidden />
            {label}
            {detail !== undefined && detail !== '' && <small>{detail}</small>}
          </div>
        ))}
      </div>
    </div>
  )
}
