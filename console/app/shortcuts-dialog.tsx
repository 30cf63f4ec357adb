import { Modal, Switch } from '@mantine/core'
import { setPreferences, usePreferences } from '../components/preferences.ts'
import { useSignedInAccount } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import { pagesForRole, pageTitle } from './pages.ts'
import classes from './shortcuts-dialog.module.css'

/** The list of shortcuts, and the switch for single letters. */
export function ShortcutsDialog({
  opened,
  onClose,
}: {
  readonly opened: boolean
  readonly onClose: () => void
}) {
  const texts = useTexts()
  const { shortcuts, common } = texts
  const { profile } = useSignedInAccount()
  const { hasLetterShortcuts } = usePreferences()
  const rows: readonly (readonly [readonly string[], string])[] = [
    [['Ctrl', 'K'], shortcuts.palette],
    [['?'], shortcuts.help],
    [['/'], shortcuts.filter],
    [['n'], shortcuts.create],
    [['j', 'k'], shortcuts.rows],
    [['Enter'], shortcuts.open],
    [['Esc'], shortcuts.close],
    ...pagesForRole(profile.role).map(
      ({ letter, name }) => [['g', letter], shortcuts.goTo(pageTitle(name, texts))] as const,
    ),
  ]
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={shortcuts.title}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <Switch
        mb="md"
        label={shortcuts.letters}
        checked={hasLetterShortcuts}
        onChange={({ currentTarget: { checked } }) => setPreferences({ hasLetterShortcuts: checked })}
      />
      <dl className={classes['list']}>
        {rows.map(([keys, meaning]) => (
          <div key={meaning}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  )
}
