# fish completion for shoal: it asks the installed command what fits
complete --command shoal --no-files \
    --condition "env _SHOAL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=is-args _TYPER_COMPLETE_ARGS=(commandline -cp) shoal" \
    --arguments "(env _SHOAL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS=(commandline -cp) shoal)"
